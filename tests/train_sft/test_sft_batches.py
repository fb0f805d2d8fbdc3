"""Which samples a step learns from: each once an epoch, in another order in the next."""

from __future__ import annotations

import pytest
import torch

from harnessctl.train.sft.batches import Batches, Family, families_of, micro_batches, share
from harnessctl.train.sft.rows import Tokens, packed

LENGTHS = [3, 9, 4, 7, 5, 8, 2, 6, 9, 1]


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_epoch_reads_every_sample_once_and_the_next_in_another_order(is_packed: bool) -> None:
    made = Batches(LENGTHS, size=12, per_step=1, seed=3, is_packed=is_packed)
    size = made.per_epoch
    epochs = [
        [place for step in range(size) for micro in made.step(epoch * size + step) for place in micro]
        for epoch in range(3)
    ]
    assert all(sorted(epoch) == list(range(len(LENGTHS))) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    again = Batches(LENGTHS, size=12, per_step=1, seed=3, is_packed=is_packed)
    assert again.step(size + 1) == made.step(size + 1), "a step is its number's, however one came to it"
    other = Batches(LENGTHS, size=12, per_step=1, seed=4, is_packed=is_packed)
    assert [other.step(step) for step in range(3 * size)] != [made.step(step) for step in range(3 * size)]


def test_every_process_has_as_many_and_together_they_have_all() -> None:
    micro = [[0], [1, 2], [3], [4], [5]]
    shares = [share(micro, process=process, processes=3) for process in range(3)]
    assert [len(one) for one in shares] == [2, 2, 2]
    assert sorted(place for one in shares for part in one for place in part) == list(range(6))


def test_rows_are_full_and_what_is_shared_counts_once() -> None:
    """Six of 60 that share 40 take 40 + 6 * 20 = 160; four others of 60 come two to a row."""
    families = [Family("one", 40)] * 6 + [Family(name, 0) for name in "abcd"]
    bins = micro_batches([60] * 10, size=160, is_packed=True, families=families)
    assert sorted(map(sorted, bins)) == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    apart = micro_batches([60] * 10, size=160, is_packed=True)
    assert [len(row) for row in apart] == [2] * 5
    few = micro_batches([60] * 6, size=100, is_packed=True, families=families[:6])
    assert sorted(len(row) for row in few) == [3, 3]
    assert micro_batches([300, 2, 3], size=100, is_packed=False) == [[0], [2, 1]]


def test_the_planned_size_is_the_size_of_the_row() -> None:
    common = torch.arange(40, dtype=torch.int32)
    samples = []
    for rest in (15, 20, 25, 22, 18):
        ids = torch.cat([common, torch.full((rest,), 100 + rest, dtype=torch.int32)])
        samples.append(Tokens(ids, torch.ones_like(ids)))
    families = families_of(samples, ["same"] * 5)
    assert {family.shared for family in families} == {40}
    bins = micro_batches([len(one) for one in samples], size=90, is_packed=True, families=families)
    sizes = [packed([samples[place] for place in row]).ids.shape[1] for row in bins]
    assert max(sizes) <= 90 and sum(sizes) == 40 * len(bins) + 100
