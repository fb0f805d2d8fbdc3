"""Speech: the language of what a viewer wrote and of what is said to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")
#: A Chinese character says about as much as this many Latin words.
WORDS_PER_CHARACTER = 0.6

Language = Literal["zh", "en"]


def same_language(names: Mapping[str, Any]) -> str:
    """Nothing where the reply is in the viewer's language; else what to do. Comments in both may be answered in either."""
    reply = names["reply"]
    wanted = languages(names["message"]) or _room_language(names["context"])
    spoken = languages(reply)
    if not wanted or not spoken or wanted & spoken:
        return ""
    return (
        "Write the reply in Chinese, as the viewer did."
        if "zh" in wanted
        else "Write the reply in English, as the viewer did."
    )


same_language.inline = True


def languages(text: str) -> set[Language]:
    """The languages that make up a good part of the text; none for numbers and signs alone."""
    chinese = len(_CHINESE.findall(text)) * WORDS_PER_CHARACTER
    english = float(len(_LATIN_WORD.findall(text)))
    share = (chinese + english) / 4
    found: set[Language] = set()
    if chinese > share:
        found.add("zh")
    if english > share:
        found.add("en")
    return found


def _room_language(context: Mapping[str, Any]) -> set[Language]:
    room = context.get("room")
    return {room["language"]} if isinstance(room, dict) and room.get("language") in ("zh", "en") else set()
