"""Number words: English numbers that are written out, in digits (`one hundred and forty-nine yuan` is `149 yuan`).

What always holds: a word that is mostly no number stays a word: `that one`, `one of them`; `one` by itself counts only
beside a unit, after `link` or `number`, and in a span (`one to two`).
"""

from __future__ import annotations

import re

_SMALL: dict[str, int] = dict(
    zip(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ],
        range(20),
        strict=True,
    )
)
_TENS: dict[str, int] = dict(
    zip(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], range(20, 100, 10), strict=True)
)
_SCALES = {"hundred": 100, "thousand": 1000}
_UNIT = r"yuan|rmb|dollars?|euros?|minutes?|hours?|days?|weeks?|months?|years?|percent|pieces?"
_WORD = "|".join((*_SMALL, *_TENS, *_SCALES))
_RUN = re.compile(rf"\b(?:{_WORD})(?:(?:[ -]|\s+and\s+)(?:{_WORD}))*\b", re.ASCII)
_BEFORE_ONE = re.compile(r"\b(?:links?|number|no\.?) $")
_AFTER_ONE = re.compile(rf"[ -](?:(?:{_UNIT})\b|(?:to|or)[ -](?:{_WORD}|\d))")


def in_digits(text: str) -> str:
    """`text` (in lower case) with its number words in digits."""
    return _RUN.sub(lambda run: _digits(run, text), text)


def _digits(run: re.Match[str], text: str) -> str:
    words = run[0].replace("-", " ").split()
    if words == ["one"] and not (_BEFORE_ONE.search(text[: run.start()]) or _AFTER_ONE.match(text, run.end())):
        return run[0]
    value = _value([word for word in words if word != "and"])
    return run[0] if value is None else str(value)


def _value(words: list[str]) -> int | None:
    """The number that the words make; None when they make none (`two three`, `hundred`)."""
    total, section, last = 0, 0, 1000
    for word in words:
        if word in _SCALES:
            size = _SCALES[word]
            if section == 0 or (size == 100 and section > 9):
                return None
            if size == 1000:
                total, section, last = total + section * size, 0, 1000
            else:
                section, last = section * size, 100
        else:
            value = _SMALL[word] if word in _SMALL else _TENS[word]
            if last <= 20 and not (last == 20 and word in _SMALL and 0 < value < 10):
                return None
            section, last = section + value, 20 if word in _TENS else 1
    return total + section
