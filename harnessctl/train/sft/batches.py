"""Batches: which samples a step learns from, in which micro-batches.

What always holds: the micro-batches of a step are a function of the samples, the seed and the step's number; an epoch
reads every sample once; all processes have as many micro-batches, empty ones where there is nothing left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harnessctl.data.packing import pack
from harnessctl.train.sft.rows import LEAST_SHARED, Tokens, common_length


@dataclass(slots=True, frozen=True)
class Family:
    """What a sequence may share its beginning with: all others of that name, which have `shared` tokens in common."""

    name: str
    shared: int


def families_of(samples: Sequence[Tokens], names: Sequence[str]) -> list[Family]:
    """The family of each sample, by the name of what it was made under (a harness)."""
    members: dict[str, list[Tokens]] = {}
    for sample, name in zip(samples, names, strict=True):
        members.setdefault(name, []).append(sample)
    shared = {name: common_length(found) if len(found) > 1 else 0 for name, found in members.items()}
    return [Family(name, shared[name]) for name in names]


class Batches:
    """Micro-batches of at most `size` tokens, `per_step` of them a step.

    Packed: first-fit decreasing (as TRL's `bfd`), which fills rows to the brim; those that begin alike (`families`) come
    together, and what they share counts once. Padded: neighbours by length, so that little of a rectangle is padding,
    which counts for its size.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        size: int,
        per_step: int,
        seed: int,
        is_packed: bool,
        families: Sequence[Family] | None = None,
    ) -> None:
        self._lengths = list(lengths)
        self._families = families
        self._size = size
        self._per_step = per_step
        self._seed = seed
        self._is_packed = is_packed
        self._epoch: tuple[int, list[list[int]]] = (0, self._bins(0))
        #: Micro-batches of an epoch; their sizes are the same in each.
        self.per_epoch = len(self._epoch[1])

    def step(self, step: int) -> list[list[int]]:
        """All micro-batches of step `step` (from 0), each a list of places of samples."""
        first = step * self._per_step
        return [self._micro(number) for number in range(first, first + self._per_step)]

    def _micro(self, number: int) -> list[int]:
        epoch, place = divmod(number, self.per_epoch)
        if self._epoch[0] != epoch:
            self._epoch = epoch, self._bins(epoch)
        return self._epoch[1][place]

    def _bins(self, epoch: int) -> list[list[int]]:
        generator = torch.Generator().manual_seed((self._seed << 20) + epoch)
        order: list[int] = torch.randperm(len(self._lengths), generator=generator).tolist()
        lengths = [self._lengths[place] for place in order]
        families = None if self._families is None else [self._families[place] for place in order]
        bins = micro_batches(lengths, size=self._size, is_packed=self._is_packed, families=families)
        shuffled: list[int] = torch.randperm(len(bins), generator=generator).tolist()
        return [[order[place] for place in bins[at]] for at in shuffled]


def micro_batches(
    lengths: Sequence[int], *, size: int, is_packed: bool, families: Sequence[Family] | None = None
) -> list[list[int]]:
    """Places of sequences, in micro-batches of at most `size` tokens (one that is longer stands alone)."""
    if not is_packed:
        return _rectangles(lengths, size)
    trees = [[place] for place in range(len(lengths))] if families is None else _trees(lengths, families, size)
    shared = [0 if families is None or len(tree) == 1 else families[tree[0]].shared for tree in trees]
    sizes = [
        common + sum(lengths[place] - common for place in tree) for tree, common in zip(trees, shared, strict=True)
    ]
    return [[place for at in row for place in trees[at]] for row in pack(sizes, size)]


def _trees(lengths: Sequence[int], families: Sequence[Family], size: int) -> list[list[int]]:
    """Places of sequences that are to share their beginning, as many as a micro-batch holds; one by one where a family
    shares nothing."""
    members: dict[str, list[int]] = {}
    for place, family in enumerate(families):
        members.setdefault(family.name, []).append(place)
    trees: list[list[int]] = []
    for places in members.values():
        shared = families[places[0]].shared
        if shared < LEAST_SHARED:
            trees += [[place] for place in places]
            continue
        rests = [max(1, lengths[place] - shared) for place in places]
        trees += [[places[at] for at in row] for row in pack(rests, max(1, size - shared))]
    return trees


def share(micro: Sequence[list[int]], *, process: int, processes: int) -> list[list[int]]:
    """The micro-batches of one process: as many for each."""
    mine = list(micro[process::processes])
    return mine + [[] for _ in range(-(-len(micro) // processes) - len(mine))]


def _rectangles(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Places by falling length, cut where one more row would make a rectangle of more than `size` tokens."""
    bins: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if bins and lengths[bins[-1][0]] * (len(bins[-1]) + 1) <= size:
            bins[-1].append(place)
        else:
            bins.append([place])
    return bins
