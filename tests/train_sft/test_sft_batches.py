"""Which samples a step learns from."""

from __future__ import annotations

import random

import pytest

from harnessctl.train.sft.batches import Batches, micro_batches, share

_draw = random.Random(0)
LENGTHS = [_draw.randint(5, 90) for _ in range(61)]


def batches(*, is_packed: bool = True, seed: int = 3) -> Batches:
    return Batches(LENGTHS, size=100, per_step=4, seed=seed, is_packed=is_packed)


@pytest.mark.parametrize("is_packed", [True, False])
def test_an_epoch_reads_every_sample_once_and_the_next_in_another_order(is_packed: bool) -> None:
    made = batches(is_packed=is_packed)
    stream = [micro for step in range(2 * made.per_epoch) for micro in made.step(step)]
    first, second = stream[: made.per_epoch], stream[made.per_epoch : 2 * made.per_epoch]
    assert sorted(place for micro in first for place in micro) == list(range(61))
    assert sorted(place for micro in second for place in micro) == list(range(61))
    assert first != second
    again = batches(is_packed=is_packed)
    assert [again.step(step) for step in (7, 2)] == [made.step(step) for step in (7, 2)]
    assert batches(is_packed=is_packed, seed=4).step(0) != made.step(0)


def test_packed_rows_are_full_and_padded_ones_of_like_lengths() -> None:
    packed = micro_batches(LENGTHS, size=100, is_packed=True)
    assert all(sum(LENGTHS[place] for place in micro) <= 100 for micro in packed)
    assert sum(LENGTHS) > 0.9 * 100 * len(packed)
    padded = micro_batches(LENGTHS, size=100, is_packed=False)
    rectangles = [max(LENGTHS[place] for place in micro) * len(micro) for micro in padded]
    assert max(rectangles) <= 100
    assert sum(LENGTHS) > 0.9 * sum(rectangles)
    assert micro_batches([300, 2], size=100, is_packed=False) == [[0], [1]]


def test_processes_have_as_many_micro_batches() -> None:
    bins = [[1], [2], [3], [4], [5]]
    parts = [share(bins, process=process, processes=3) for process in range(3)]
    assert parts == [[[1], [4]], [[2], [5]], [[3], []]]
