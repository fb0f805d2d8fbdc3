"""Slots: texts and values of a family with `{name}` where a column of the drawn row goes in.

A text that is exactly one slot keeps the column's type; within a text a value is written as JSON writes it, text as it
is. `{{` and `}}` are braces. Texts in lists and maps are filled as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Row = Mapping[str, Any]
Fill = Callable[[Row], Any]

SLOT = re.compile(r"\{[^\W\d]\w*\}")
_BRACES = re.compile(r"\{\{|\}\}|\{([^\W\d]\w*)\}|[{}]")


def as_text(value: Any) -> str | None:
    """A cell as a text has it; None where there is nothing."""
    return None if value is None else f"{value}"


class SlotError(ValueError):
    """A brace that is neither doubled nor part of a slot; `at` is its place in the text, from 0."""

    def __init__(self, at: int) -> None:
        super().__init__("a brace is not part of a slot")
        self.at = at


class Template:
    """A value with slots. `names` are all columns that it reads, `written` those that stand within a text.

    With `texts` every text stays one: a slot alone is written as within a text.
    """

    __slots__ = ("_texts", "fill", "names", "written")

    def __init__(self, value: Any, *, texts: bool = False) -> None:
        self._texts = texts
        self.written: set[str] = set()
        self.names: set[str] = set()
        self.fill: Fill = self._compiled(value)

    def _compiled(self, value: Any) -> Fill:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            items = [self._compiled(item) for item in value]
            return lambda row: [item(row) for item in items]
        if isinstance(value, dict):
            entries = [(key, self._compiled(item)) for key, item in value.items()]
            return lambda row: {key: item(row) for key, item in entries}
        return lambda row: value

    def _text(self, text: str) -> Fill:
        parts = _parts(text)
        slots = [part for part, is_slot in parts if is_slot]
        self.names.update(slots)
        if len(parts) == 1 and slots and not self._texts:
            name = slots[0]
            return lambda row: row[name]
        self.written.update(slots)
        if not slots:
            plain = "".join(part for part, _ in parts)
            return lambda row: plain
        form = "".join("%s" if is_slot else part.replace("%", "%%") for part, is_slot in parts)
        return lambda row: form % tuple(row[name] for name in slots)


def _parts(text: str) -> list[tuple[str, bool]]:
    """(text, is a slot) in order; SlotError for a brace that stands alone."""
    out: list[tuple[str, bool]] = []
    end = 0
    for found in _BRACES.finditer(text):
        if found.start() > end:
            out.append((text[end : found.start()], False))
        end = found.end()
        if found[1]:
            out.append((found[1], True))
        elif found[0] in ("{{", "}}"):
            out.append((found[0][0], False))
        else:
            raise SlotError(found.start())
    if end < len(text):
        out.append((text[end:], False))
    return out
