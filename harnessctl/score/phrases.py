"""Phrases: whether a text says something, compared by what is meant and not by how it is typed.

What always holds: width, case, spacing and the way in which a number is written change nothing (`８９.００元` says
`89元`, `twelve-month` says `12 months`, `No. 3` says `link 3`); a phrase is never found inside a longer word or number
(`89` is not said by `189` or `89.9`), in a number of another unit (`89 yuan` is not said by `89 dollars`), or where the
words right before deny it (`not in stock`, `没有货`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from harnessctl.numerals import Number, canonical, numbers_in
from harnessctl.score.measures import Measure, is_denied, measures, normal, readable

_SPACE = re.compile(r"\s+")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_NUMBER = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d])|\d+(?:\.\d+)?")
#: A text that holds nothing to be found by: signs and spaces.
_EMPTY = re.compile(r"[\W_]*")


@functools.lru_cache(maxsize=8192)
def plain(text: str) -> str:
    """`text` in the form in which it is compared: NFKC, no case, one space, numbers without needless zeros."""
    text = normal(text).translate(_QUOTES).casefold()
    text = _NUMBER.sub(lambda number: canonical(number[0].replace(",", "")), text)
    return _SPACE.sub(" ", text).strip()


def holds(text: str, phrase: str, *, is_said: bool = False) -> bool:
    """Whether `text` holds `phrase` (both `plain`) as words of its own; with `is_said`, where nothing denies it."""
    if not phrase:
        return False
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if not _joined(text, start) and not _joined(text, end) and not (is_said and is_denied(text, start)):
            return True
        start = text.find(phrase, start + 1)
    return False


class Said:
    """A text, read once: what it says."""

    def __init__(self, text: str) -> None:
        self.text = plain(text)
        self._raw = text
        self._said: dict[str, bool] = {}

    @property
    def numbers(self) -> Sequence[Number]:
        """Its numbers, as a statement says them."""
        return numbers_in(self._raw)

    @functools.cached_property
    def measures(self) -> Sequence[Measure]:
        """Its numbers with their units, Chinese numerals of every kind counted."""
        return measures(readable(self._raw), generous=True)

    @functools.cached_property
    def links(self) -> dict[str, str]:
        """The numbers of links that it names (`link 3`, `3号`), by value, as they are written."""
        return {value: own.number.written for own in self.measures if own.unit == "nth" for value in own.values}

    def says(self, phrase: str) -> bool:
        """Whether it says `phrase`: word for word, or its numbers and each of its other words in any order; and does not
        deny it."""
        said = self._said.get(phrase)
        if said is None:
            said = self._said[phrase] = (self.holds(phrase) and not _is_bare(phrase)) or self._says_parts(
                *_measured(phrase)
            )
        return said

    def holds(self, phrase: str) -> bool:
        """Whether it holds `phrase` word for word, somewhere where it is not denied."""
        return holds(self.text, plain(phrase), is_said=True)

    def _says_parts(self, phrase: str, wanted: Sequence[Measure]) -> bool:
        """Whether it says each measure of `phrase`, which has some, and holds what is left of it."""
        if not wanted:
            return False
        for measure in wanted:
            given = [own for own in self.measures if own.stands_for(measure) and not own.is_denied]
            if not given:
                return False
            if any(own.unit == measure.unit for own in given):
                spoken = phrase[measure.start : measure.end]
            else:  # the unit has to be said elsewhere
                spoken = measure.number.written
            phrase = phrase.replace(spoken, "\n" * len(spoken), 1)
        rest = (plain(part) for part in phrase.split("\n"))
        return all(_EMPTY.fullmatch(part) or holds(self.text, part, is_said=True) for part in rest)


@functools.lru_cache(maxsize=256)
def read(text: str) -> Said:
    """What `text` says; one reading for every dimension that asks."""
    return Said(text)


@functools.lru_cache(maxsize=8192)
def _measured(phrase: str) -> tuple[str, tuple[Measure, ...]]:
    text = readable(phrase)
    return text, measures(text)


@functools.lru_cache(maxsize=8192)
def _is_bare(phrase: str) -> bool:
    """Whether a phrase has nothing to be found by but numbers, so that what they count has to be looked at."""
    rest, found = _measured(phrase)
    for measure in found:
        rest = rest.replace(measure.number.written, " ", 1)
    return bool(found) and _EMPTY.fullmatch(rest) is not None


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
