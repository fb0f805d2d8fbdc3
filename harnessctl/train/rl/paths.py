"""Paths: what an update reads: ids of one unbroken context, and which of them the policy said with what advantage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(slots=True, frozen=True)
class Path:
    """One context. `places` are the positions in `ids` of the policy's tokens, ascending and from 1 on; `advantages` and
    `sampled` (the log-probabilities at which they were drawn) are as long.

    `old` are the log-probabilities before the batch's first update, `reference` those of the policy at its start; null
    where nothing asks for them.
    """

    ids: Sequence[int]
    places: Sequence[int]
    advantages: Sequence[float]
    sampled: Sequence[float]
    old: Sequence[float] | None = None
    reference: Sequence[float] | None = None

    @property
    def read(self) -> Sequence[int]:
        """The ids that must be read: what stands before the last of the policy's tokens."""
        return self.ids[: self.places[-1]]


def shared_length(paths: Sequence[Path]) -> int:
    """How many ids all paths have in common from the start, of those that must be read."""
    shortest = min((path.read for path in paths), key=len)
    low, high = 0, len(shortest)
    while low < high:
        middle = (low + high + 1) // 2
        if all(path.ids[low:middle] == shortest[low:middle] for path in paths):
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True)
class Said:
    """The policy's tokens of several paths, one after the other; each (T,). `sequences` numbers their paths from 0."""

    ids: torch.Tensor
    advantages: torch.Tensor
    sampled: torch.Tensor
    sequences: torch.Tensor
    old: torch.Tensor | None
    reference: torch.Tensor | None

    @classmethod
    def of(cls, paths: Sequence[Path], device: torch.device) -> Said:
        """What was said in `paths`, in their order."""

        def floats(name: str) -> torch.Tensor | None:
            values = [getattr(path, name) for path in paths]
            if any(value is None for value in values):
                return None
            return torch.tensor([x for value in values for x in value], dtype=torch.float32, device=device)

        advantages, sampled = floats("advantages"), floats("sampled")
        assert advantages is not None and sampled is not None
        counts = torch.tensor([len(path.places) for path in paths], dtype=torch.int64, device=device)
        return cls(
            ids=torch.tensor(
                [path.ids[place] for path in paths for place in path.places], dtype=torch.int64, device=device
            ),
            advantages=advantages,
            sampled=sampled,
            sequences=torch.arange(len(paths), device=device).repeat_interleave(counts),
            old=floats("old"),
            reference=floats("reference"),
        )
