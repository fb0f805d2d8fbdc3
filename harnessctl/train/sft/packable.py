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
    if module.can_pack():
        return True
    if asked == "on":
        raise TrainingError(
            "packing=on, and this model lets one sequence of a row see the one before it (it keeps a running state)",
            hint="packing=auto pads instead",
        )
    talk("not packed: this model lets one sequence of a row see the one before it; micro-batches are padded instead")
    return False
