"""Marks: what in a text is, or could be read as, a name.

What always holds: code spans are found as Markdown finds them (a run of backticks to the next run of the same length,
fenced blocks aside) in the text as it is rendered, with every reference standing for itself; so that a reference which
other backticks swallow is seen.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harnessctl.bundle.text import Text
from harnessctl.manifests.code_spans import code_spans, fences

#: Stands for a reference's name; of the private use area, so that no author means anything by it.
_NAME = "\ue000"
_WORD = re.compile(r"[A-Za-z0-9_]+(?:[-.]+[A-Za-z0-9_]+)*")
#: Code spans as `SurfaceView.shown` finds them in texts that are made at run time.
_SHOWN = re.compile(r"`(?:(tool|skill):)?([^`\n]+)`")


@dataclass(slots=True, frozen=True)
class Marks:
    """`names` are references as `tool:x`, `skill:x`, `limit:x`, `rules` the ids of references to rules; `spans` code
    spans that are no reference; `words` those with `_` or `-` outside references. `whole` is false when a reference is
    not a code span of its own."""

    names: frozenset[str] = frozenset()
    rules: frozenset[str] = frozenset()
    spans: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    whole: bool = True

    def meets(self, names: frozenset[str] | set[str]) -> set[str]:
        """Which of `names` stand here in words or code spans of their own."""
        if self.spans.isdisjoint(names) and self.words.isdisjoint(names):
            return set()
        return {name for name in names if name in self.spans or name in self.words}


NOTHING = Marks()


def marks_of(text: Text) -> Marks:
    """The marks of one text."""
    if len(text) == 1 and isinstance(text[0], str):
        return _plain(text[0])
    names: set[str] = set()
    rules: set[str] = set()
    parts: list[str] = []
    spans_due = 0
    for part in text:
        if isinstance(part, str):
            parts.append(part)
            continue
        parts.append(_NAME if part.kind == "limit" else f"`{_NAME}`")
        spans_due += part.kind != "limit"
        (rules.add(part.name) if part.kind == "rule" else names.add(f"{part.kind}:{part.name}"))
    rendered = "".join(parts)
    spans = list(spans_in(rendered))
    return Marks(
        frozenset(names),
        frozenset(rules),
        frozenset(span for span in spans if span != _NAME and span),
        words_of(rendered),
        spans.count(_NAME) >= spans_due,
    )


@functools.lru_cache(maxsize=8192)
def _plain(text: str) -> Marks:
    """The marks of a text without references."""
    spans, words = frozenset(span for span in spans_in(text) if span), words_of(text)
    return Marks(spans=spans, words=words) if spans or words else NOTHING


def words_of(text: str) -> frozenset[str]:
    """The words of `text` with `_` or `-` in them, and the parts of those that hold dots."""
    if "_" not in text and "-" not in text:
        return frozenset()
    found: set[str] = set()
    for word in _WORD.findall(text):
        if "_" in word or "-" in word:
            found.add(word)
            if "." in word:
                found.update(part for part in word.split(".") if part)
    return frozenset(found)


def spans_in(text: str) -> Iterator[str]:
    """What the code spans of `text` hold, without the blanks around it."""
    if "`" not in text:
        return
    at = 0
    for start, end in [*fences(text), (len(text), len(text))]:
        yield from (text[opened:closed].strip("`").strip() for opened, closed in code_spans(text, at, start))
        at = end


def shown_spans(text: str) -> Iterator[tuple[str | None, str]]:
    """(`tool`, `skill` or None, name) of each code span that the runtime would look at in a text made at run time."""
    if "`" in text:
        for found in _SHOWN.finditer(text):
            yield found[1], found[2]


class MarksOf:
    """Marks by the identity of a text, kept for texts that come again; `kept` false works each out anew.

    A text is held as long as its marks are, so that no other text can take its identity. At most `_MOST` are kept; those
    without references are known by what they say, since a variant brings its own.
    """

    _MOST = 8192

    def __init__(self, *, kept: bool = True) -> None:
        self._kept = kept
        #: By the identity of a text, with the text.
        self.known: dict[int, tuple[Text, Marks]] = {}

    def __call__(self, text: Text) -> Marks:
        found = self.known.get(id(text))
        if found is not None:
            return found[1]
        if len(text) == 1 and isinstance(text[0], str):
            return _plain(text[0]) if self._kept else _plain.__wrapped__(text[0])
        return self.keep(text)

    def keep(self, text: Text) -> Marks:
        """The marks of a text that will come again."""
        marks = marks_of(text)
        if self._kept:
            if len(self.known) >= self._MOST:
                self.known.clear()
            self.known[id(text)] = (text, marks)
        return marks
