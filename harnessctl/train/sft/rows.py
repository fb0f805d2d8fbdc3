"""Rows: token sequences as the tensors of one forward pass, packed into one row or padded to a rectangle.

What always holds: a token sees its own sequence's earlier tokens and no others. Packed sequences are told apart by
positions that begin again at 0, which transformers turns into a block mask as long as there is neither a cache nor an
attention mask; padding stands at the end of a row, where a causal model cannot look back from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(slots=True, frozen=True)
class Tokens:
    """One sequence: `ids` and `mask` (1: a token of the policy, to be learnt), both int32 of one length.

    The first token is read and never predicted, whatever its mask.
    """

    ids: torch.Tensor
    mask: torch.Tensor

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def weight(self) -> int:
        """How many tokens are predicted and learnt."""
        return int(self.mask[1:].sum())


@dataclass(slots=True, frozen=True)
class Rows:
    """Shapes: `ids` and `positions` (rows, length); `at` and `labels` (n,).

    `at` are places in the flattened (rows * length) states from which `labels` are predicted.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    at: torch.Tensor
    labels: torch.Tensor

    def to(self, device: torch.device) -> Rows:
        """The same on a device."""
        return Rows(self.ids.to(device), self.positions.to(device), self.at.to(device), self.labels.to(device))


def packed(sequences: Sequence[Tokens]) -> Rows:
    """All sequences one after the other in one row; without any, a row of one token that predicts nothing."""
    if not sequences:
        return _nothing()
    ids = torch.cat([one.ids for one in sequences]).long()
    positions = torch.cat([torch.arange(len(one)) for one in sequences])
    learnt = torch.cat([_learnt(one) for one in sequences])
    return Rows(ids[None], positions[None], learnt.nonzero()[:, 0] - 1, ids[learnt])


def padded(sequences: Sequence[Tokens]) -> Rows:
    """A row for each sequence, filled up at the end with id 0; as `packed` without any."""
    if not sequences:
        return _nothing()
    length = max(map(len, sequences))
    ids = torch.zeros(len(sequences), length, dtype=torch.long)
    learnt = torch.zeros(len(sequences), length, dtype=torch.bool)
    for row, one in enumerate(sequences):
        ids[row, : len(one)] = one.ids
        learnt[row, : len(one)] = _learnt(one)
    positions = torch.arange(length).expand(len(sequences), length)
    return Rows(ids, positions, learnt.flatten().nonzero()[:, 0] - 1, ids[learnt])


def _learnt(one: Tokens) -> torch.Tensor:
    learnt = one.mask.bool().clone()
    learnt[:1] = False
    return learnt


def _nothing() -> Rows:
    """What a process without a share of a step reads: a sharded model has to be passed through all the same."""
    nothing = torch.zeros(0, dtype=torch.long)
    return Rows(torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1, dtype=torch.long), nothing, nothing)
