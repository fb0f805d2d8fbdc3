"""Values: numbers of a reply that no source has, and numbers said in the place of those that are due."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harnessctl.numerals import canonical, known_numbers, numbers_in
from harnessctl.records.scenario import Fact, Gold
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.phrases import Said

#: Whole numbers below this are mostly words ('one question', 'both'); the shipped hooks let them pass as well.
COUNTED_FROM = 3
_MONEY = "money"
_UNITS = dict.fromkeys(("yuan", "rmb", "cny", "元", "块", "¥", "￥", "$", "usd", "eur", "€"), _MONEY) | {"折": "off"}
_BEFORE = re.compile(r"([¥￥$€])\s*$")
_AFTER = re.compile(r"\s*(%|[¥￥$€]|[A-Za-z]+|[\u3400-\u9fff])")


def unsourced(reply: Said, gold: Gold, trajectory: Trajectory) -> list[str]:
    """The numbers of a reply that stand in no result, no input of the request and nothing of gold, as they were written."""
    wanted = [number for number in reply.numbers if number.size >= COUNTED_FROM]
    if not wanted:
        return []
    known: set[str] = set()
    for source in _sources(gold, trajectory):
        known.update(known_numbers(source))
        wanted = [number for number in wanted if not any(known.issuperset(way) for way in number.ways)]
        if not wanted:
            return []
    return list(dict.fromkeys(number.written for number in wanted))


def _sources(gold: Gold, trajectory: Trajectory) -> Iterator[Any]:
    """From what is the least to read on; none is read further than needed."""
    for fact in gold.facts:
        yield from fact.any
    yield from gold.replies
    yield from gold.fallbacks
    yield _results(trajectory)
    yield trajectory.request
    yield trajectory.context


def _results(trajectory: Trajectory) -> list[Any]:
    """What tools answered; an answer that an injected fault spoiled (an old price) supports nothing."""
    return [call.result for call in trajectory.tools if call.status == "ok" and call.fault is None]


def in_place_of(fact: Fact, reply: Said, text: str, gold: Gold, trajectory: Trajectory) -> list[str]:
    """Numbers that `text` (what `reply` was read from) says where the fact's is due; `fact` is one that it does not say.

    A number stands in its place when it has the same unit, or when a tool result has it under the same key. Numbers that
    right replies and other facts say stand for themselves.
    """
    values = {value for phrase in fact.any for number in numbers_in(phrase) for value in number.ways[0]}
    if not values:
        return []
    units = {unit for phrase in fact.any for _, value, unit in _measured(phrase) if unit and value in values}
    results = _results(trajectory)
    keys = {key for key, value in _leaves(results) if value in values}
    same_key = {value for key, value in _leaves(results) if key in keys} - values
    spoken = {
        v for said in (*gold.replies, *_others(fact, gold)) for number in numbers_in(said) for v in number.ways[0]
    }
    return list(
        dict.fromkeys(
            written
            for written, value, unit in _measured(text)
            if value not in values and value not in spoken and (unit in units or value in same_key)
        )
    )


def beside_the_question(reply: Said, gold: Gold, trajectory: Trajectory) -> list[str]:
    """The numbers of links in a reply of which none is one that the comments, a call of gold, a fact or a right reply
    names; nothing where right replies name none, as other numbers (`on the 5th`, `5号`) are written like links."""
    said = reply.links
    if not said:
        return []
    calls = [call.arguments for call in (*gold.calls, *gold.optional, *(c for plan in gold.alternatives for c in plan))]
    if any(type(value) is int and str(value) in said for arguments in calls for value in arguments.values()):
        return []  # as nearly every right reply: the rest need not be read
    facts = [text for fact in gold.facts for text in fact.any]
    asked = [trajectory.request.get("text"), *(m.get("text") for m in trajectory.request.get("messages") or ())]
    # From what is the least to read on; none is read further than needed.
    if any(
        not said.keys().isdisjoint(known_numbers(source))
        for source in (calls, asked, gold.known, facts, gold.fallbacks)
    ):
        return []
    right = {value for text in gold.replies for value in Said(text).links}
    return list(dict.fromkeys(said.values())) if right and said.keys().isdisjoint(right) else []


def _others(fact: Fact, gold: Gold) -> Iterator[str]:
    for other in gold.facts:
        if other is not fact:
            yield from other.any


def _measured(text: str) -> Iterator[tuple[str, str, str]]:
    """Each number of a text: as written, its plainest value, and its unit or nothing."""
    at = 0
    for number in numbers_in(text):
        found = text.find(number.written, at)
        if found < 0:
            yield number.written, number.ways[0][0], ""
            continue
        at = found + len(number.written)
        before, after = _BEFORE.search(text[:found]), _AFTER.match(text, at)
        unit = (before or after or ("", ""))[1].lower()
        yield number.written, number.ways[0][0], _UNITS.get(unit, unit)


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(key, number) of each number in a result."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, key)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        for number in known_numbers(value):
            yield key, canonical(number)
