"""Patterns: errors that are told by their words: what a live host would not say, in English and Chinese.

The expressions are in `patterns.yaml`. All of them are looked for in every reply, whatever its language: a Chinese reply
may speak of the `database` too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from harnessctl.manifests.packaged import packaged_yaml

Span = tuple[int, int]


@functools.cache
def patterns() -> dict[str, re.Pattern[str]]:
    """By kind, one expression of all of its languages."""
    kinds: dict[str, dict[str, list[str]]] = packaged_yaml(__file__, "patterns.yaml")
    return {
        kind: re.compile("|".join(_whole(text, language) for language, texts in by.items() for text in texts), re.I)
        for kind, by in kinds.items()
    }


def _whole(text: str, language: str) -> str:
    """An expression that matches whole words where they are Latin."""
    quoted = text.replace("'", "['’]") if language == "en" else text
    return rf"\b(?:{quoted})\b" if language == "en" else f"(?:{quoted})"


def spans(kind: str, text: str) -> Iterator[Span]:
    """Where an error of a kind stands, each place once."""
    found: Any
    for found in patterns()[kind].finditer(text):
        if found.end() > found.start():
            yield found.start(), found.end()
