"""Repeats: apologies that go on, and what is said again within one reply."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnessctl.score.naturalness.patterns import Span

_APOLOGY = re.compile(
    r"\b(?:sorry|apologi[sz]e|apologies|forgive (?:me|us)|pardon)\b|抱歉|对不起|不好意思|对不住|致歉|见谅", re.I
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+")
_SIGNS = re.compile(r"[\W_]+")
#: Sentences shorter than this, without signs, may come again (`Yes.`, `好的。`).
_LEAST = 4
#: Latin words, or Chinese characters, of a stretch that stands right behind itself.
_STUTTER = re.compile(
    r"\b([^\W\d_]{2,}(?:\W+[^\W\d_]+){1,7})(?:\W+\1\b)+|([\u4e00-\u9fff]{2,12})(?:[，、 ]?\2){2,}", re.I
)


def apologies(text: str) -> Iterator[Span]:
    """Every apology after the first."""
    found = list(_APOLOGY.finditer(text))
    for match in found[1:]:
        yield match.start(), match.end()


def repeated(text: str) -> Iterator[Span]:
    """Each sentence that was said before, and stretches of words said twice in a row."""
    seen: set[str] = set()
    spans: list[Span] = []
    for match in _SENTENCE.finditer(text):
        said = _SIGNS.sub("", match[0]).casefold()
        if len(said) < _LEAST:
            continue
        if said in seen:
            lead = len(match[0]) - len(match[0].lstrip())
            spans.append((match.start() + lead, match.end()))
        seen.add(said)
    for match in _STUTTER.finditer(text):
        if not any(start < match.end() and match.start() < end for start, end in spans):
            spans.append((match.start(), match.end()))
    yield from sorted(spans)
