"""Packing: sequences of different length laid end to end in rows of bounded size.

What always holds: every sequence is in exactly one row, whole; a row holds at most `size` tokens, unless it holds one
sequence that is longer by itself. Equal lengths give equal rows.
"""

from __future__ import annotations

from collections.abc import Sequence


def pack(lengths: Sequence[int], size: int) -> list[list[int]]:
    """First-fit decreasing: the places of the sequences in each row.

    From the longest to the shortest (equals in their order), each goes into the first row that has room. At most 11/9
    of the least number of rows, and one. O(n log n) for n sequences: rows are found by a tree of free room.
    """
    if size < 1:
        raise ValueError("a row holds at least one token")
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    rows: list[list[int]] = []
    room = _Room(len(lengths), size)
    for place in order:
        length = lengths[place]
        row = room.first(length) if length <= size else len(rows)
        if length > size:
            # Longest first: such rows stand before all others and have no room for anything.
            room.fill(row, size)
        else:
            room.fill(row, length)
        if row == len(rows):
            rows.append([])
        rows[row].append(place)
    return rows


class _Room:
    """Free room of rows 0, 1, ... in a tree of maxima."""

    def __init__(self, rows: int, size: int) -> None:
        self._width = 1
        while self._width < max(rows, 1):
            self._width *= 2
        self._most = [size] * (2 * self._width)

    def first(self, wanted: int) -> int:
        """The first row with room for `wanted`; there always is one, since there are as many rows as sequences."""
        node = 1
        while node < self._width:
            node *= 2
            if self._most[node] < wanted:
                node += 1
        return node - self._width

    def fill(self, row: int, taken: int) -> None:
        """Take room in a row."""
        node = row + self._width
        self._most[node] -= taken
        while node > 1:
            node //= 2
            self._most[node] = max(self._most[2 * node], self._most[2 * node + 1])
