"""Code spans: where Markdown has code, found as a renderer finds it: a run of backticks to the next run of the same length,
fenced blocks aside.

What always holds: the time taken grows with the length of the text, whatever stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TICKS = re.compile(r"`+")
_FENCE = re.compile(r"^ *(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)$", re.MULTILINE)


def code_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The code spans in `text[start:end]`: from a run of backticks to the next run of the same length."""
    runs = [match.span() for match in _TICKS.finditer(text, start, end)]
    # From the end backwards, so that a text of unpaired backticks takes no longer than any other.
    partner: dict[int, int] = {}
    last: dict[int, int] = {}
    for n in range(len(runs) - 1, -1, -1):
        length = runs[n][1] - runs[n][0]
        if length in last:
            partner[n] = last[length]
        last[length] = n
    n = 0
    while n < len(runs):
        if n in partner:
            yield runs[n][0], runs[partner[n]][1]
            n = partner[n]
        n += 1


def fences(text: str) -> Iterator[tuple[int, int]]:
    """The fenced blocks of `text`: from a line that begins with three or more ` or ~ (and has no ` after the `) to the
    next one that is at least as long and has nothing behind it. A fence that is never closed is none."""
    if "```" not in text and "~~~" not in text:
        return
    lines = [(m.start(), m.end(), m[1], not m[2].strip()) for m in _FENCE.finditer(text)]
    unclosed: dict[str, int] = {}  # the least length of an opening that nothing closes
    n = 0
    while n < len(lines):
        start, _, marker, _ = lines[n]
        n += 1
        if len(marker) >= unclosed.get(marker[0], len(marker) + 1):
            continue
        for k in range(n, len(lines)):
            _, end, other, is_bare = lines[k]
            if is_bare and other.startswith(marker):
                yield start, end
                n = k + 1
                break
        else:
            unclosed[marker[0]] = len(marker)
