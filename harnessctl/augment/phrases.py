"""Phrases: a text cut into tokens, and a table that finds the longest phrase at a token.

What always holds: the tokens of a text, joined, with what lies between them, are the text again; a reference and a quoted
string are each one token (see `opaque`), so that nothing inside them is ever read as a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

V = TypeVar("V")

#: Private-use characters that stand for what is opaque: `OPEN kind:name CLOSE` is a reference.
OPEN, CLOSE = "\ue000", "\ue001"
_RESERVED = str.maketrans({OPEN: "\ufffd", CLOSE: "\ufffd", "\ue002": "\ufffd", "\ue003": "\ufffd"})

HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
TOKEN = re.compile(
    rf"{OPEN}[^{CLOSE}]*{CLOSE}"  # opaque
    r"|\d+(?:[.,:]\d+)*"  # a number
    rf"|[{HAN}]"
    rf"|[^\W\d_{HAN}]+(?:['’][^\W\d_{HAN}]+)*"  # a word, with its apostrophes
    r"|\S"
)


def harmless(text: str) -> str:
    """`text` without the characters that stand for what is opaque."""
    return text.translate(_RESERVED)


class PhraseTable(Generic[V]):
    """Values by phrase: a phrase is a sequence of tokens, in lower case."""

    def __init__(self, entries: Iterable[tuple[str, V]]) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], V]]] = {}
        for phrase, value in entries:
            tokens = tuple(TOKEN.findall(phrase.lower()))
            self._by_first.setdefault(tokens[0], []).append((tokens, value))
        for members in self._by_first.values():
            members.sort(key=lambda member: -len(member[0]))

    def at(self, tokens: Sequence[str], index: int) -> tuple[int, V] | None:
        """(how many tokens, value) of the longest phrase that begins at `index`; null when there is none."""
        for phrase, value in self._by_first.get(tokens[index], ()):
            size = len(phrase)
            if size == 1 or tuple(tokens[index : index + size]) == phrase:
                return size, value
        return None

    def all_at(self, tokens: Sequence[str], index: int) -> list[tuple[int, V]]:
        """(how many tokens, value) of every phrase that begins at `index`, longest first."""
        return [
            (len(phrase), value)
            for phrase, value in self._by_first.get(tokens[index], ())
            if len(phrase) == 1 or tuple(tokens[index : index + len(phrase)]) == phrase
        ]
