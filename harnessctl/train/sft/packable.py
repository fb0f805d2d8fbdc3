"""Packable: whether a model's sequences may share a row, and what a person is told where they may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from harnessctl.errors import TrainingError
from harnessctl.train.sft.token_loss import TokenLoss


def packs(module: TokenLoss, asked: Literal["auto", "on", "off"], talk: Callable[[str], None]) -> bool:
    """Whether to pack. `auto`: where a trial shows that packed sequences do not see each other; said where they do.

    TrainingError for `on` with a model that does not keep them apart.
    """
    if asked == "off":
        return False
    why = module.why_not_packed()
    if why is None:
        return True
    if asked == "on":
        raise TrainingError(f"packing=on, and this model cannot be packed: {why}", hint="packing=auto pads instead")
    talk(f"not packed, but padded: {why}")
    return False
