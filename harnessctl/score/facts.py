"""Facts: what of gold a reply must say, and what it need not because its source failed for good."""

from __future__ import annotations

from collections.abc import Sequence

from harnessctl.numerals import known_numbers, numbers_in
from harnessctl.records.scenario import Fact, Gold
from harnessctl.records.trajectory import ToolCall, Trajectory
from harnessctl.score.losses import is_cut_off, lost_calls
from harnessctl.score.phrases import Said


def is_said(fact: Fact, reply: Said) -> bool:
    """Whether a reply says one of the fact's wordings."""
    return any(reply.says(phrase) for phrase in fact.any)


def due_facts(gold: Gold, trajectory: Trajectory) -> tuple[list[Fact], list[Fact]]:
    """The facts that are due, and those that are waived: their source's call was lost (see `losses`), or could not be
    made because one that comes before it was.

    Where the same tool answered another call, facts that could come of that answer stay due.
    """
    lost = lost_calls(trajectory)
    if not lost:
        return gold.facts, []
    is_cut = is_cut_off(gold, lost)
    due: list[Fact] = []
    waived: list[Fact] = []
    for fact in gold.facts:
        (waived if _is_lost(fact, trajectory.tools, lost, is_cut=is_cut) else due).append(fact)
    return due, waived


def _is_lost(fact: Fact, calls: Sequence[ToolCall], lost: Sequence[ToolCall], *, is_cut: bool) -> bool:
    if fact.source is None:
        return False
    answers = [call.result for call in calls if call.name == fact.source and call.status == "ok" and call.fault is None]
    if not (is_cut or any(call.name == fact.source for call in lost)):
        return False
    told = set(known_numbers(answers))
    return not answers or not any(_is_told(phrase, told) for phrase in fact.any)


def _is_told(phrase: str, told: set[str]) -> bool:
    """Whether results hold the numbers of a phrase; one without numbers could be told by any."""
    return all(any(told.issuperset(way) for way in number.ways) for number in numbers_in(phrase))
