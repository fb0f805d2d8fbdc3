"""Subject: what the core query of a scenario is about, as the rubric ACQ holds it: taken from gold's right replies.

What always holds: every right reply addresses the query by the rubric that is made of it, and small talk does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harnessctl.records.scenario import Gold, Scenario
from harnessctl.records.task import Addresses
from harnessctl.score.effectiveness import asks_back
from harnessctl.score.measures import measures, readable
from harnessctl.score.phrases import Said
from harnessctl.score.query import is_about
from harnessctl.simulate.obeying import FILLERS
from harnessctl.simulate.wording import neutral

#: Units of which a number, right or wrong, answers: a price, a time. A link's number or a place in a list is none.
_UNITS = frozenset({"yuan", "dollar", "euro", "percent", "off", "minute", "hour", "day", "week", "month", "year"})
_WORD = re.compile(r"[a-z][a-z'-]{3,}|[\u3400-\u9fff]{2}")
_HAN = re.compile(r"[\u3400-\u9fff]+")
#: Words of many a reply, which make it about nothing.
_COMMON = frozenset((
    "link", "page", "have", "that", "this", "with", "from", "your", "here", "there", "please", "open", "shows", "what",
    "which", "when", "will", "yours", "them", "they", "then", "than", "into", "more", "some", "only", "also", "very",
    "been", "were", "does", "each", "both", "just",
))  # fmt: skip


def addresses(scenario: Scenario) -> Addresses | None:
    """The rubric of the core query; null where right replies and small talk cannot be told apart."""
    gold = scenario.gold
    assert gold is not None
    about = _about(gold, small_talk(scenario.language))
    rubric = Addresses(id="ACQ", about=about, units=_units(gold), asks=asks_back(gold))
    if rubric.asks:
        return rubric
    if not rubric.about and not rubric.units:
        return None
    if not all(is_about(Said(text), rubric) for text in gold.replies):
        return None
    return None if any(is_about(Said(text), rubric) for text in small_talk(scenario.language)) else rubric


def small_talk(language: str) -> Sequence[str]:
    """Sentences that answer nothing."""
    spoken = language.partition("-")[0]
    return (*neutral(language), *FILLERS.get(spoken, FILLERS["en"]))


def _about(gold: Gold, elsewhere: Sequence[str]) -> list[str]:
    """The facts, those of tools alone where there are such; the links and the words that all right replies have, and that
    small talk has not."""
    facts = [fact for fact in gold.facts if fact.source is not None] or gold.facts
    found = [text for fact in facts for text in fact.any]
    if not gold.replies:
        return found
    links = [set(Said(text).links) for text in gold.replies]
    shared = sorted(set.intersection(*links))
    found += [phrase for value in shared for phrase in (f"link {value}", f"{value}号")]
    words = [_words(text) for text in gold.replies]
    found += sorted(set.intersection(*words) - _COMMON - set().union(*map(_words, elsewhere)))
    return list(dict.fromkeys(found))


def _words(text: str) -> set[str]:
    """The words of a text that say something: Latin ones of four letters, pairs of Chinese characters."""
    plain = text.casefold()
    pairs = {run[at : at + 2] for run in _HAN.findall(plain) for at in range(len(run) - 1)}
    return pairs | {word for word in _WORD.findall(plain) if word.isascii()}


def _units(gold: Gold) -> list[str]:
    """The units of the facts."""
    found = {measure.unit for fact in gold.facts for text in fact.any for measure in measures(readable(text))}
    return sorted(found & _UNITS)
