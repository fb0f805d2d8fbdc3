"""Language: whether a reply is in the viewer's language, told by its writing.

What always holds: names, numbers and signs alone are in no language, and a reply in two languages is in both.
"""

from __future__ import annotations

import re

#: A word of each writing; where words are not set apart, a character counts as part of one.
_WRITINGS: dict[str, tuple[re.Pattern[str], float]] = {
    "han": (re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]"), 0.6),
    "kana": (re.compile(r"[\u3040-\u30ff]"), 0.4),
    "hangul": (re.compile(r"[\uac00-\ud7af]+"), 1.0),
    "thai": (re.compile(r"[\u0e00-\u0e7f]"), 0.3),
    "arabic": (re.compile(r"[\u0600-\u06ff]{2,}"), 1.0),
    "cyrillic": (re.compile(r"[\u0400-\u04ff]{2,}"), 1.0),
    "latin": (re.compile(r"[A-Za-z\u00c0-\u024f]{2,}"), 1.0),
}
_ASCII = {"latin": _WRITINGS["latin"]}
_OF = {"zh": {"han"}, "ja": {"kana"}, "ko": {"hangul"}, "th": {"thai"}, "ar": {"arabic"}, "ru": {"cyrillic"}}
#: What makes up this share of a text is one of its writings.
SHARE = 0.25


def writings(text: str) -> set[str]:
    """The writings that make up a good part of `text`."""
    # Plain ASCII is in no other writing, and seven searches are most of what this takes.
    tried = _ASCII if text.isascii() else _WRITINGS
    sizes = {name: len(words.findall(text)) * weight for name, (words, weight) in tried.items()}
    whole = sum(sizes.values())
    return {name for name, size in sizes.items() if size > whole * SHARE}


def is_in(text: str, language: str) -> bool:
    """Whether `text` may be in `language` (`en`, `zh`, `zh-Hans`, ...); languages of one writing are not told apart."""
    found = writings(text)
    return not found or bool(found & _OF.get(language.partition("-")[0], {"latin"}))
