"""User checks: whether a viewer's message in other words still says what the script says.

What always holds: the checks read words, not meaning, and err on the side of refusing: numbers, codes, the names that gold
rests on, negation, language, and a length of the same order stay.
"""

from __future__ import annotations

import re

from harnessctl.numerals import numbers_in
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.language import language_of

#: A wording may be this much longer than its script, in characters, beyond twice its length.
SPARE_CHARS = 24
#: Values of one character would be found in any text.
_MIN_KEPT_CHARS = 2

_CODE = re.compile(r"[#@]?[A-Za-z]*\d[\w-]*", re.ASCII)
_NEGATION = re.compile(r"\b(?:not|no|never|without|none|nothing|cannot)\b|n['’]t\b", re.IGNORECASE)
_ASKED_ZH = re.compile(r"(.)[不没]\1|有没有|是不是|对不对|不错|不好意思|没问题")
_NEGATION_ZH = re.compile(r"[不没别未]")
_MARKUP = re.compile(r"https?:|[\r\n`<>{}\[\]|]|\*\*")


def kept_words(text: str, scenario: Scenario) -> list[str]:
    """What must stand in every wording of `text` as it is: codes, and values that gold was drawn with; in order."""
    found = {code[0] for code in _CODE.finditer(text)}
    gold = scenario.gold
    values = [] if gold is None else [*gold.known.values(), *_arguments(scenario)]
    for value in values:
        word = value if isinstance(value, str) else ""
        if len(word) >= _MIN_KEPT_CHARS and word in text and word != text:
            found.add(word)
    return sorted(found)


def voice_fault(before: str, after: str, keep: list[str]) -> str | None:
    """What is wrong with `after` as a wording of `before`, in a word; None when it holds."""
    said = after.strip()
    if not said or said.casefold() == before.strip().casefold():
        return "same"
    if _MARKUP.search(said) and not _MARKUP.search(before):
        return "markup"
    if len(said) > 2 * len(before) + SPARE_CHARS:
        return "length"
    if any(word not in said for word in keep):
        return "name"
    if _numbers(said) != _numbers(before):
        return "number"
    if language_of(said) != language_of(before):
        return "language"
    if _negated(said) != _negated(before):
        return "negation"
    return None


def _arguments(scenario: Scenario) -> list[object]:
    assert scenario.gold is not None
    return [value for call in scenario.gold.calls for value in call.arguments.values()]


def _numbers(text: str) -> list[tuple[str, ...]]:
    return sorted(number.ways[0] for number in numbers_in(text))


def _negated(text: str) -> bool:
    plain = _ASKED_ZH.sub("", text)
    return bool(_NEGATION.search(plain) or _NEGATION_ZH.search(plain))
