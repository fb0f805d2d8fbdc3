"""Languages: which ones the texts of a harness are written in, for what is added to them."""

from __future__ import annotations

import re
from typing import Literal

from harnessctl.augment.once import once
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text

Language = Literal["en", "zh"]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z]{2,}")
#: A Chinese word has about this many characters.
_CHARS_A_WORD = 1.5
#: A language that makes up less than this share of the words is only quoted.
_QUOTED = 0.2


@once
def languages(state: HarnessState) -> tuple[Language, ...]:
    """The languages of the texts of `state`, the one with most words first; at least one."""
    texts: list[Text] = []
    for skill in state.skills:
        texts += [skill.description, *(part.text for part in skill.body), *(rule.text for rule in skill.rules)]
    for block in state.prompt.blocks:
        texts += [block.heading, *(item.text for item in block.items)]
    texts += [tool.description for tool in state.tools]
    plain = " ".join(part for text in texts for part in text if isinstance(part, str))
    plain += " ".join(block.template or "" for block in state.prompt.blocks)
    han, words = len(_HAN.findall(plain)) / _CHARS_A_WORD, len(_WORD.findall(plain))
    if han > words:
        return ("zh", "en") if words > _QUOTED * (han + words) else ("zh",)
    return ("en", "zh") if han > _QUOTED * (han + words) else ("en",)
