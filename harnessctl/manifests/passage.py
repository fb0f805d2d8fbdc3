"""Passage: a piece of text that knows where in its file each of its characters stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harnessctl.errors import Fault, Severity
from harnessctl.manifests.encoding import line_and_column

Place = tuple[int, int]


class Passage:
    """`text` and a way from an offset in it to (line, column), both 1-based. The way is gone only when asked."""

    __slots__ = ("_locate", "path", "text")

    def __init__(self, path: str, text: str, locate: Callable[[int], Place]) -> None:
        self.path = path
        self.text = text
        self._locate = locate

    def place(self, offset: int = 0) -> Place:
        """(line, column) of the character at `offset`."""
        return self._locate(offset)

    def line_place(self, line: int) -> Place:
        """(line, column) of the first character of the 1-based `line` of the text."""
        start = 0
        for _ in range(line - 1):
            start = self.text.find("\n", start) + 1
        return self._locate(start)

    def part(self, start: int, end: int) -> Passage:
        """The passage of `text[start:end]`."""
        return Passage(self.path, self.text[start:end], lambda offset: self._locate(start + offset))

    def fault(
        self,
        offset: int,
        code: str,
        message: str,
        *,
        got: str = "",
        allowed: str = "",
        hint: str = "",
        severity: Severity = "error",
    ) -> Fault:
        """A fault at `offset`."""
        line, col = self._locate(offset)
        return Fault(self.path, line, col, code, message, got, allowed, hint, severity)


def from_lines(path: str, lines: Sequence[tuple[str, int, int]]) -> Passage:
    """The passage of lines given as (text, line, column of the first character)."""

    def locate(offset: int) -> Place:
        for text, line, col in lines:
            if offset <= len(text):
                return line, col + offset
            offset -= len(text) + 1
        return lines[-1][1], lines[-1][2]

    return Passage(path, "\n".join(text for text, _, _ in lines), locate)


def aligned(path: str, text: str, source: str, start: int, end: int, shift: Place = (0, 0)) -> Passage:
    """The passage of a scalar's value whose written form is `source[start:end]`.

    Folding, quotes and escapes stand between the two, so each word is looked for in order; a character that the
    written form does not show (an escape) is placed where the one before it stood. `shift` is added to each place.
    """

    ends: list[int] = []  # for each character, where it or the last one before it that is found ends; made when asked

    def locate(offset: int) -> Place:
        if not ends:
            index = start
            for char in text:
                found = -1 if char.isspace() else source.find(char, index, end)
                index = found + 1 if found >= 0 else index
                ends.append(index)
        index = ends[min(offset, len(ends) - 1)] if ends else start
        line, col = line_and_column(source, max(start, index - 1))
        return line + shift[0], col + shift[1]

    return Passage(path, text, locate)
