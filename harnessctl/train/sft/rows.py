"""Rows: token sequences as the tensors of one forward pass, packed into one row or padded to a rectangle.

What always holds: a token sees its own sequence's earlier tokens and no others. Packed sequences are the trees of a forest
(train/forest): those that begin alike share what they have in common, positions go on behind it, and the others stand apart.
Padding stands at the end of a row, where a causal model cannot look back from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harnessctl.train.forest import Tree

#: What sequences have in common at least to share it.
LEAST_SHARED = 32


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

    `at` are places in the flattened (rows * length) states from which `labels` are predicted, sequence by sequence.
    `trees` are those of a packed row; null for padded ones.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    at: torch.Tensor
    labels: torch.Tensor
    trees: tuple[Tree, ...] | None = None

    def to(self, device: torch.device) -> Rows:
        """The same on a device."""
        trees = None if self.trees is None else tuple(Tree(tree.prefix, tree.branches, device) for tree in self.trees)
        return Rows(self.ids.to(device), self.positions.to(device), self.at.to(device), self.labels.to(device), trees)


def packed(sequences: Sequence[Tokens]) -> Rows:
    """All sequences in one row, what some begin with alike written once; without any, a row of one token that predicts
    nothing."""
    if not sequences:
        return _nothing()
    ids: list[torch.Tensor] = []
    positions: list[torch.Tensor] = []
    at: list[torch.Tensor] = []
    labels: list[torch.Tensor] = []
    trees: list[Tree] = []
    size = 0
    for prefix, members in _alike(sequences):
        begin = size
        ids.append(members[0].ids[:prefix])
        positions.append(torch.arange(prefix))
        size += prefix
        branches: list[int] = []
        for one in members:
            rest = len(one) - prefix
            predicted = _learnt(one).nonzero()[:, 0]
            from_ = predicted - 1
            at.append(torch.where(from_ < prefix, begin + from_, size - prefix + from_))
            labels.append(one.ids[predicted])
            if rest:
                ids.append(one.ids[prefix:])
                positions.append(torch.arange(prefix, len(one)))
                branches.append(rest)
                size += rest
        trees.append(Tree(prefix, tuple(branches), torch.device("cpu")))
    return Rows(
        torch.cat(ids).long()[None], torch.cat(positions)[None], torch.cat(at), torch.cat(labels).long(), tuple(trees)
    )


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


def common_length(sequences: Sequence[Tokens]) -> int:
    """How many ids all sequences begin with alike."""
    first = min(sequences, key=len).ids
    found = len(first)
    for one in sequences:
        apart = (one.ids[:found] != first[:found]).nonzero()
        found = int(apart[0, 0]) if len(apart) else found
    return found


def _alike(sequences: Sequence[Tokens]) -> list[tuple[int, list[Tokens]]]:
    """The sequences in groups that begin alike, with how much they have in common: all of it for one that stands alone. One
    joins a group where that halves at most what the group has in common."""
    groups: list[tuple[int, list[Tokens]]] = []
    for one in sequences:
        for place, (shared, members) in enumerate(groups):
            common = common_length([members[0], one])
            if common >= LEAST_SHARED and (len(members) == 1 or 2 * common >= shared):
                groups[place] = min(shared, common), [*members, one]
                break
        else:
            groups.append((len(one), [one]))
    return groups


def _learnt(one: Tokens) -> torch.Tensor:
    learnt = one.mask.bool().clone()
    learnt[:1] = False
    return learnt


def _nothing() -> Rows:
    """What a process without a share of a step reads: a sharded model has to be passed through all the same."""
    nothing = torch.zeros(0, dtype=torch.long)
    return Rows(torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1, dtype=torch.long), nothing, nothing)
