"""Mixture: another language in the middle of a reply: Chinese in an English one, English sentences in a Chinese one.

Names of goods are Latin in Chinese rooms, too: a word or two (`Oxford`, `SPF50`) are no error, three running words are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnessctl.score.naturalness.patterns import Span

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff][\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef]*")
_WORDS = re.compile(r"[a-z][A-Za-z'’]+(?:[ ,]+[a-z][A-Za-z'’]*){2,}")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]{3,}(?:\s+[\u0400-\u04ff]+)*")


def mixed(text: str, language: str) -> Iterator[Span]:
    """Stretches in another language than `language` (`en`, `zh`, `zh-Hans`); for others nothing is said."""
    spoken = language.partition("-")[0]
    tried = {"en": (_HAN, _CYRILLIC), "zh": (_WORDS, _CYRILLIC)}.get(spoken, ())
    yield from sorted((match.start(), match.end()) for form in tried for match in form.finditer(text))
