"""Rows of several sequences: nothing lost, nothing split."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.data.packing import pack

LENGTHS = st.lists(st.integers(0, 60), max_size=60)


def naive(lengths: list[int], size: int) -> list[list[int]]:
    """First-fit decreasing, word for word."""
    rows: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda place: (-lengths[place], place)):
        for row in rows:
            if sum(lengths[other] for other in row) + lengths[place] <= size:
                row.append(place)
                break
        else:
            rows.append([place])
    return rows


@given(LENGTHS, st.integers(1, 70))
@settings(max_examples=200, deadline=None)
def test_rows_hold_every_sequence_once(lengths: list[int], size: int) -> None:
    rows = pack(lengths, size)
    assert sorted(place for row in rows for place in row) == list(range(len(lengths)))
    for row in rows:
        used = [lengths[place] for place in row]
        assert sum(used) <= size or len([length for length in used if length]) == 1
    assert rows == pack(list(lengths), size)


@given(LENGTHS, st.integers(60, 90))
@settings(max_examples=200, deadline=None)
def test_it_is_first_fit_decreasing(lengths: list[int], size: int) -> None:
    assert pack(lengths, size) == naive(lengths, size)


def test_many_sequences_take_no_quadratic_time() -> None:
    lengths = [(place * 7919) % 1990 + 10 for place in range(6_000)]
    rows = pack(lengths, 2048)
    assert sum(lengths) / (2048 * len(rows)) > 0.97


def test_a_row_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        pack([1], 0)
    assert pack([], 4) == []
    assert pack([9, 2, 2], 4) == [[0], [1, 2]]
