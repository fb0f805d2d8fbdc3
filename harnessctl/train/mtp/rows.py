"""Rows: sequences side by side in one row, on the device, as the head reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from harnessctl.train.mtp.collect import Example, HiddenStates
from harnessctl.train.mtp.head import NextNHead


@dataclass(slots=True, frozen=True)
class Row:
    """`ids`, `mask`, `segments` (from 1, by sequence) and `positions` are (1, tokens), `hidden` (1, tokens, width)."""

    ids: torch.Tensor
    mask: torch.Tensor
    hidden: torch.Tensor
    segments: torch.Tensor
    positions: torch.Tensor


def make_row(examples: Sequence[Example], head: NextNHead) -> Row:
    """The examples behind one another. Without any: one token of padding."""
    device, width = head.fc.weight.device, head.fc.weight.shape[0]
    lengths = [len(example.ids) for example in examples]
    if not examples:
        examples = [Example(torch.zeros(1, dtype=torch.long), torch.zeros(1, dtype=torch.long), torch.zeros(1, width))]

    def row(parts: Iterable[torch.Tensor]) -> torch.Tensor:
        return torch.cat(list(parts))[None].to(device)

    return Row(
        ids=row(example.ids for example in examples),
        mask=row(example.mask for example in examples),
        hidden=row(example.hidden.to(head.fc.weight.dtype) for example in examples),
        segments=row(torch.full((n,), place) for place, n in enumerate(lengths, 1)) if lengths else _zero(device),
        positions=row(torch.arange(n) for n in lengths) if lengths else _zero(device),
    )


def read_row(states: HiddenStates, numbers: Iterable[int], head: NextNHead) -> Row:
    """The sequences `numbers` of `states`."""
    return make_row([states.read(number) for number in numbers], head)


def _zero(device: torch.device) -> torch.Tensor:
    return torch.zeros(1, 1, dtype=torch.long, device=device)
