"""Stream: random numbers that depend on names alone, so that no draw moves another.

What always holds: a stream is made of its names (seed, number of the variant, operator, target) and of nothing else;
the same names give the same draws on any machine, in any process, whatever was drawn elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")

_blake2b = hashlib.blake2b
_WORDS = 8
_SCALE = 2.0**-53


class Stream:
    """Draws for one target of one operator in one variant. BLAKE2b in counter mode; 64 bits a draw."""

    __slots__ = ("_block", "_key", "_next")

    def __init__(self, *names: str | int) -> None:
        self._key = "\0".join(map(str, names)).encode("utf-8", "surrogatepass")
        self._block = b""
        self._next = 0

    def _draw(self) -> int:
        at = self._next % _WORDS
        if at == 0:
            number = self._next // _WORDS
            # A salt of zeros is none.
            salt = number.to_bytes(8, "big") if number else b""
            self._block = _blake2b(self._key, digest_size=64, salt=salt).digest()
        self._next += 1
        return int.from_bytes(self._block[8 * at : 8 * at + 8], "big")

    def unit(self) -> float:
        """A number in [0, 1)."""
        return (self._draw() >> 11) * _SCALE

    def chance(self, rate: float) -> bool:
        """True with probability `rate`."""
        return rate >= 1 or (rate > 0 and (self._draw() >> 11) * _SCALE < rate)

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self._draw() % (high - low + 1)

    def choice(self, members: Sequence[T]) -> T:
        """One of `members`, which are not empty."""
        return members[self._draw() % len(members)]

    def shuffle(self, members: MutableSequence[T]) -> None:
        """Put `members` into an order in which each is equally likely (Fisher and Yates)."""
        for last in range(len(members) - 1, 0, -1):
            other = self._draw() % (last + 1)
            members[last], members[other] = members[other], members[last]

    def shuffled(self, members: Sequence[T]) -> list[T]:
        """`members` in a new order."""
        out = list(members)
        self.shuffle(out)
        return out
