"""Measures: the numbers of a text with what they count: `89 yuan`, `¥89` and `八十九元` are one measure, and so are `link 3`,
`No. 3`, `number three` and `3号`.

What always holds: a number keeps every way in which it can be read (see `numerals`); a unit that is not known here is no
unit; a number that is denied where it stands (`not 89 yuan`, `不是89元`) says so.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import NamedTuple

from harnessctl.numerals import Number, numbers_in
from harnessctl.score.number_words import in_digits

#: What a number of something else can never stand for: a place in a list, a share.
_APART = frozenset({"nth", "percent", "off"})
_YUAN = r"yuan|rmb|cny|人民币|元|块|圆|¥"
_DOLLAR = r"us dollars?|dollars?|usd|美元|\$"
_EURO = r"euros?|eur|欧元|€"
_AFTER = {
    "yuan": _YUAN,
    "dollar": _DOLLAR,
    "euro": _EURO,
    "percent": r"%|percent|per cent",
    "off": r"折",
    "minute": r"minutes?|mins?|分钟",
    "hour": r"hours?|hrs?|h|个?小时|个?钟头",
    "day": r"days?|个?自然日|个?工作日|天|日",
    "week": r"weeks?|周|个?星期|个?礼拜",
    "month": r"months?|个月",
    "year": r"years?|年",
    "nth": r"号",
}
_BEFORE = {"nth": r"links?|numbers?|no\.?|#|(?<!号)链接|第", "yuan": _YUAN, "dollar": _DOLLAR, "euro": _EURO}
_UNIT_AFTER = re.compile(
    r"[\s-]*(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _AFTER.items()) + r")(?![a-z])"
)
_UNIT_BEFORE = re.compile(
    r"(?<![a-z])(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _BEFORE.items()) + r")\s*$"
)
_LISTED = re.compile(r"(?<=[0-9])，(?=[0-9])")
_DIGITS = re.compile(r"[\d.,]+")
#: The longest unit that comes before its number.
_REACH = 16
_DENIED = re.compile(
    r"(?:(?<!why )\b(?:not|never|no|nothing|none)|n't)(?: (?:is|yet|currently|really|actually|even|been|a|an|the|any))? $"
    r"|(?:不是|没有?|未|不)再?$"
)


class Measure(NamedTuple):
    """A number and its unit, empty where none is known; `start` and `end` bound both in the text that `measures` read."""

    number: Number
    unit: str
    start: int
    end: int
    is_denied: bool

    @property
    def values(self) -> frozenset[str]:
        """Every value that it may have by itself."""
        return frozenset(way[0] for way in self.number.ways if len(way) == 1)

    def stands_for(self, wanted: Measure) -> bool:
        """Whether saying this is saying `wanted`: equal, and not of another unit. One without a unit goes for any but a
        share; a share may be said as its fraction."""
        if wanted.unit == "percent" or self.unit == "percent":
            plain, said = wanted.number.ways[0], self.number.ways[0]
            if wanted.unit == self.unit:
                return plain == said
            return wanted.unit == "percent" and not self.unit and said in wanted.number.ways[1:]
        if not self.values & wanted.values:
            return False
        if not wanted.unit:
            return self.unit not in _APART
        return not self.unit or self.unit == wanted.unit


def normal(text: str) -> str:
    """`text` by NFKC; a full-width comma stays a comma between numbers (`1号，3` and `链接1，168块`), not one of thousands."""
    return unicodedata.normalize("NFKC", _LISTED.sub(", ", text))


@functools.lru_cache(maxsize=8192)
def readable(text: str) -> str:
    """`text` as measures are read from it: without case, number words in digits."""
    return in_digits(normal(text).casefold())


@functools.lru_cache(maxsize=4096)
def measures(text: str, *, generous: bool = False) -> tuple[Measure, ...]:
    """The measures of a `readable` text; `generous` counts Chinese numerals of every kind."""
    found: list[Measure] = []
    at = 0
    for number in numbers_in(text, generous=generous):
        written = number.written
        start = text.find(written, at)
        if start < 0 and (digits := _DIGITS.match(written)):  # `20 %` is written as `20%`
            written = digits[0]
            start = text.find(written, at)
        if start < 0:  # numerals come after all digits
            start = text.find(written)
        if start < 0:
            found.append(Measure(number, "", 0, 0, False))
            continue
        at = start + len(written)
        found.append(_measured(number, text, start, at))
    return tuple(found)


def _measured(number: Number, text: str, start: int, end: int) -> Measure:
    before = _UNIT_BEFORE.search(text[max(0, start - _REACH) : start])
    after = _UNIT_AFTER.match(text, end)
    unit = ""
    if number.written.endswith("%") or number.written.startswith("百分之"):
        unit = "percent"
    elif number.written.endswith("折"):
        unit = "off"
    elif "块" in number.written:
        unit = "yuan"
    elif before and (before.lastgroup == "nth" or not after):
        unit, start = before.lastgroup or "", start - len(before[0])
    elif after and not (after.lastgroup == "day" and text[:start].endswith("月")):
        unit, end = after.lastgroup or "", after.end()
    return Measure(number, unit, start, end, is_denied(text, start))


def is_denied(text: str, at: int) -> bool:
    """Whether what begins at `at` (in a text without case and double spaces) is denied by the words before it."""
    return _DENIED.search(text, max(0, at - 24), at) is not None
