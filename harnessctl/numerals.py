"""Numbers: the numbers that a text or a value says, in a form in which equal numbers are equal strings.

Read (after NFKC, so that full-width digits and signs are plain ones):

- runs of digits, with at most one decimal point: `89`, `89.90` = `89.9`, `007` = `7`; a sign is ignored, so that a
  range `3-5` is 3 and 5, a date `2026-10-19` or `10月19日` is its parts, a time `20:30` is 20 and 30, and more than one
  point (`2026.10.19`, `1.2.3`) separates as well;
- groups of thousands: `1,299` is 1299, or, as a list, 1 and 299;
- `万 亿 千 百` after digits multiply (`1.2万` = 12000); `k` and `w` may (`4k` is 4 or 4000, `1.2w` is 1.2 or 12000);
- percent: `20%` is 20 or 0.2, `100%` is 100 alone; discounts: `8折` is 8, 0.8 or 80, `85折` is 85, 8.5 or 0.85; `9块9` is 9.9;
- Chinese numerals: `一百二十八`, `两百`, `三千五`, `一万二`, `二〇二六`, `百分之二十`, `八五折`, `九块九`.

One-character numerals and digit strings (`一下`, `三三两两`) are mostly no numbers, so in a statement a Chinese numeral
counts only when it has a unit within (`十二`, `一百`), a 〇, or is followed by 元, 块钱, 折, 角, 毛, 年 or %; `双十一`
never counts. Sources are read generously: there every well-formed numeral counts. Not read: number words of other
languages, 1.299,00, spaces within a number, exponents, Roman numerals, 半, 3万5.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

#: Texts of up to so many characters are read once, as long as they are among the last.
_SHORT = 200
#: Longer runs of digits (order numbers) are compared as they are: nobody scales them.
_MAX_SCALED_DIGITS = 24

_ARABIC = re.compile(
    r"(?P<grouped>(?<![\d.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d]))"
    r"|(?P<plain>\d+(?:\.\d+)*)"
)
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_AFTER = re.compile(
    r"\s*(?P<percent>%)|(?P<scale>[百千万亿]+)|(?P<maybe>[kKwW])(?![A-Za-z])|(?P<off>折)|块(?P<tenth>\d)(?!\d)"
)
_CHINESE = re.compile(r"(?P<percent>百分之)?(?P<run>[零〇一二两三四五六七八九十百千万亿]+)")
_CHINESE_TENTH = re.compile(r"块(?P<tenth>[一二三四五六七八九])(?![十百千万亿])")
_COUNTS_BEFORE = re.compile(r"元|折|角|毛|年|\s*%|块钱|块(?=\W|$)")
_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_SECTIONS = {"万": 10**4, "亿": 10**8}
_MAYBE = {"k": 3, "w": 4}


class Number(NamedTuple):
    """A number as it was written, and the ways to understand it: each way is the numbers that must all be known."""

    written: str
    ways: tuple[tuple[str, ...], ...]

    @property
    def size(self) -> float:
        """The value of the first way's first number."""
        return float(self.ways[0][0])


def numbers_in(text: str, *, generous: bool = False) -> tuple[Number, ...]:
    """The numbers that `text` says, those in digits first; `generous` for sources."""
    return _read_short(text, generous) if len(text) <= _SHORT else _read(text, generous)


def _read(text: str, generous: bool) -> tuple[Number, ...]:
    if text.isascii():
        return tuple(_arabic(text))
    text = _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), unicodedata.normalize("NFKC", text))
    return (*_arabic(text), *_chinese(text, generous))


#: Names, units and sentences come again and again, in what a tool says, in what is said of it and in what is scored.
_read_short = functools.lru_cache(maxsize=8192)(_read)


def known_numbers(value: Any) -> list[str]:
    """Every number that a source says, in every way to understand it: a text, or JSON with its keys."""
    found: list[str] = []
    _know(value, found)
    return found


def _know(value: Any, found: list[str]) -> None:
    # A list handed down, as generators within generators take most of the time for results of many small values.
    if isinstance(value, str):
        for number in numbers_in(value, generous=True):
            for way in number.ways:
                found += way
    elif isinstance(value, dict):
        for key, item in value.items():
            if not (type(key) is str and key.isascii() and key.isalpha()):  # a plain word, as most keys are, says none
                _know(key, found)
            _know(item, found)
    elif isinstance(value, list):
        for item in value:
            _know(item, found)
    elif type(value) is int and value.bit_length() <= 64:
        found.append(str(abs(value)))
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if exact.is_finite():
            found.append(canonical(format(exact.copy_abs(), "f")))


def canonical(digits: str) -> str:
    """A number without leading zeros and without zeros at the end of its fraction: `007.50` is `7.5`."""
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{fraction}" if fraction else whole


def _arabic(text: str) -> Iterator[Number]:
    end = 0
    while (match := _ARABIC.search(text, end)) is not None:
        written, end = match[0], match.end()
        if not match["grouped"] and written.count(".") > 1:
            for part in written.split("."):
                yield Number(part, ((canonical(part),),))
            continue
        after = _AFTER.match(text, end)
        if after is not None and after["tenth"]:
            end = after.end()
        ways = _ways(written.replace(",", ""), after)
        if match["grouped"] and (after is None or not after["scale"]):
            ways = (*ways, tuple(canonical(part) for part in written.split(",")))
        yield Number(_spelled(written, after), ways)


def _spelled(written: str, after: re.Match[str] | None) -> str:
    return written + after[0].strip() if after else written


def _ways(digits: str, after: re.Match[str] | None) -> tuple[tuple[str, ...], ...]:
    """The ways to understand digits by what follows them."""
    if after is None or len(digits) > _MAX_SCALED_DIGITS:
        return ((canonical(digits),),)
    if after["scale"]:
        factor = 1
        for char in after["scale"]:
            factor *= _UNITS.get(char) or _SECTIONS[char]
        return ((_shifted(digits, len(str(factor)) - 1),),)
    if after["maybe"]:
        return (canonical(digits),), (_shifted(digits, _MAYBE[after["maybe"].lower()]),)
    if after["tenth"]:
        return ((canonical(f"{digits}.{after['tenth']}"),),) if "." not in digits else ((canonical(digits),),)
    return _percent(digits) if after["percent"] else _off(digits)


def _percent(digits: str) -> tuple[tuple[str, ...], ...]:
    """Percent, or the fraction that it is; not a whole number, or `100%` would be said by any 1."""
    fraction = _shifted(digits, -2)
    return ((canonical(digits),), (fraction,)) if "." in fraction else ((canonical(digits),),)


def _off(digits: str) -> tuple[tuple[str, ...], ...]:
    """折: tenths of the price (8折), or hundredths when two digits are written (85折)."""
    shifts = (-1, 1) if float(digits) < 10 else (-1, -2)
    return (canonical(digits),), *((_shifted(digits, shift),) for shift in shifts)


def _shifted(digits: str, places: int) -> str:
    return canonical(format(Decimal(digits).scaleb(places), "f"))


def _chinese(text: str, generous: bool) -> Iterator[Number]:
    end = 0
    while (match := _CHINESE.search(text, end)) is not None:
        end = match.end()
        value = chinese_value(match["run"])
        if value is None:
            continue
        digits = str(value)
        tenth = _CHINESE_TENTH.match(text, end)
        if tenth is not None:
            end = tenth.end()
            yield Number(match[0] + tenth[0], ((f"{digits}.{_DIGITS[tenth['tenth']]}",),))
        elif match["percent"]:
            yield Number(match[0], _percent(digits))
        elif generous or _counts(match, text):
            off = text.startswith("折", end)
            yield Number(match[0] + "折" * off, _off(digits) if off else ((digits,),))


def _counts(match: re.Match[str], text: str) -> bool:
    """Whether a numeral in a statement is meant as a number."""
    run = match["run"]
    if run == "十一" and text[: match.start()].endswith("双"):
        return False
    if _COUNTS_BEFORE.match(text, match.end()):
        return True
    return len(run) > 1 and any(char in "十百千万亿〇" for char in run)


def chinese_value(run: str) -> int | None:
    """The value of a Chinese numeral; None when it is not well-formed (`一五一十`, `千万`).

    A last digit without its unit counts the next lower one: `三千五` is 3500.
    """
    if all(char in _DIGITS for char in run):
        return int("".join(str(_DIGITS[char]) for char in run))
    total, rest, last_section = 0, run, 10**9
    for char, size in reversed(_SECTIONS.items()):
        if char in rest:
            head, _, rest = rest.partition(char)
            value = _section(head)
            if not value or size >= last_section:
                return None
            total, last_section = total + value * size, size
    if not rest:
        return total
    if total and len(rest) == 1 and rest in _DIGITS and rest not in "零〇":
        return total + _DIGITS[rest] * last_section // 10
    tail = _section(rest.lstrip("零〇"))
    return None if tail is None else total + tail


def _section(run: str) -> int | None:
    """The value of a numeral below 10,000, or None."""
    total, digit, unit, zero = 0, None, 10_000, False
    for char in run:
        if char in "零〇":
            if digit is not None:
                return None
            zero = True
        elif char in _DIGITS:
            if digit is not None:
                return None
            digit = _DIGITS[char]
        else:
            size = _UNITS.get(char)
            if size is None or size >= unit or (digit is None and char != "十"):
                return None
            total, digit, unit, zero = total + (1 if digit is None else digit) * size, None, size, False
    if digit is None:
        return None if not total or zero else total
    return total + digit * (unit // 10 if total and not zero and unit > 10 else 1)
