"""Which samples a step learns from: each once an epoch, in another order in the next."""

from __future__ import annotations

import pytest

from harnessctl.train.sft.batches import Batches, share

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
