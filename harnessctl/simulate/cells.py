"""Cells: numbers as spreadsheets and shops write them (`¥189`, `189元`, `1,299`, `２５`), for the fault that refuses them.

What always holds: nothing is cleaned in silence; a cell that is not a plain number is named with what it would be.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_MONEY = r"(?:[¥$€£]|yuan|rmb|cny|usd|eur|元|块钱|块)"
_UNIT = r"(?:%|°?[a-z]{1,5}|[克千公升斤件个只双片包盒瓶袋寸米厘毫]{1,3})"
_NUMBER = r"(?P<number>[+-]?\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?|[+-]?\d+(?:\.\d+)?)"
_WRITTEN = re.compile(rf"(?P<before>{_MONEY})?\s*{_NUMBER}\s*(?P<after>{_MONEY}|{_UNIT})?", re.IGNORECASE)
_SUM = re.compile(rf"(?P<before>{_MONEY})?\s*{_NUMBER}\s*(?P<after>{_MONEY})?", re.IGNORECASE)
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)


def plain_number(cell: Any) -> str | None:
    """The number that a cell means, as a CSV would have it; None where it is no number."""
    if not isinstance(cell, str):
        return None
    found = _WRITTEN.fullmatch(_folded(cell))
    return re.sub(r"[,' +]", "", found["number"]) if found is not None else None


def how_to_clean(cell: Any, *, is_text: bool) -> str:
    """What to write in the place of a cell that should be a number; nothing where it is not clear. `is_text`: of a CSV."""
    number = plain_number(cell)
    if number is None:
        return ""
    if _PLAIN.fullmatch(cell):
        return "" if is_text else f"write {number}, without quotes"
    return f"write {number}: no currency sign, no unit, no separators of thousands"


def is_sum(cell: Any) -> bool:
    """Whether a cell is a number, with a currency sign or word or without, and nothing else."""
    return isinstance(cell, int | float) or (isinstance(cell, str) and _SUM.fullmatch(_folded(cell)) is not None)


def is_plain(cell: Any) -> bool:
    """Whether a cell is a number as a CSV has it."""
    return isinstance(cell, int | float) or (isinstance(cell, str) and _PLAIN.fullmatch(cell) is not None)


def is_number(cell: Any) -> bool:
    """Whether a cell is a number, plain or as people write it."""
    return is_plain(cell) or plain_number(cell) is not None


def has_money(cell: Any) -> bool:
    """Whether a cell is a number with a currency sign or word, and nothing else."""
    found = _SUM.fullmatch(_folded(cell)) if isinstance(cell, str) else None
    return found is not None and (found["before"] or found["after"]) is not None


def _folded(cell: str) -> str:
    return unicodedata.normalize("NFKC", cell).strip()
