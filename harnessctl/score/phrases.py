"""Phrases: whether a text says something, compared by what is meant and not by how it is typed.

What always holds: width, case, spacing and the way in which a number is written change nothing (`８９.００元` says
`89元`); a phrase is never found inside a longer word or number (`89` is not said by `189` or `89.9`).
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

from harnessctl.numerals import Number, canonical, numbers_in

_SPACE = re.compile(r"\s+")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_NUMBER = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d])|\d+(?:\.\d+)?")
#: A text that holds nothing to be found by: signs and spaces.
_EMPTY = re.compile(r"[\W_]*")


@functools.lru_cache(maxsize=8192)
def plain(text: str) -> str:
    """`text` in the form in which it is compared: NFKC, no case, one space, numbers without needless zeros."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()
    text = _NUMBER.sub(lambda number: canonical(number[0].replace(",", "")), text)
    return _SPACE.sub(" ", text).strip()


def holds(text: str, phrase: str) -> bool:
    """Whether `text` holds `phrase` (both `plain`) as words of its own."""
    if not phrase:
        return False
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if not _joined(text, start) and not _joined(text, end):
            return True
        start = text.find(phrase, start + 1)
    return False


class Said:
    """A text, read once: what it says."""

    def __init__(self, text: str) -> None:
        self.text = plain(text)
        self._raw = text

    @property
    def numbers(self) -> Sequence[Number]:
        """Its numbers, as a statement says them."""
        return numbers_in(self._raw)

    @functools.cached_property
    def values(self) -> frozenset[str]:
        """The plainest value of each number, Chinese numerals of every kind counted."""
        return frozenset(v for number in numbers_in(self._raw, generous=True) for v in number.ways[0])

    def says(self, phrase: str) -> bool:
        """Whether it says `phrase`: word for word, or its numbers and each of its other words in any order."""
        if holds(self.text, plain(phrase)):
            return True
        numbers = list(numbers_in(phrase))
        if not numbers or not all(self._has(number) for number in numbers):
            return False
        rest = phrase
        for number in numbers:
            rest = rest.replace(number.written, "\n", 1)
        return all(_EMPTY.fullmatch(part) or holds(self.text, plain(part)) for part in rest.split("\n"))

    def _has(self, number: Number) -> bool:
        return any(self.values.issuperset(way) for way in number.ways)


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of position `at` belong to one word or number."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before.isdigit():
        return after.isdigit() or (after in ".," and at + 1 < len(text) and text[at + 1].isdigit())
    if after.isdigit():
        return before in ".," and at > 1 and text[at - 2].isdigit()
    return before.isascii() and after.isascii() and before.isalpha() and after.isalpha()
