"""Rubrics: what a task asks of an item, checked one by one on the trajectory: ACQ, RC, TC, FI, TCO [4.2, C.3], NAT [5.6].

What always holds: equal records give equal verdicts; an injected fault is nobody's fault: a call that was lost to one (see
`losses`) counts as made, and what it would have told need not be said. Calls that load a skill are those of `load_skill`,
whatever the harness calls it. In the ReAct loop, which has no skills, the order of loading one is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from harnessctl.records.gold_call import GoldCall
from harnessctl.records.scenario import Fact, Scenario
from harnessctl.records.score import Finding
from harnessctl.records.task import Addresses, Called, Natural, Ordered, Rubric, Says, Task
from harnessctl.records.trajectory import ToolCall, Trajectory
from harnessctl.score.calls import LOAD_SKILL, equal_call
from harnessctl.score.facts import due_facts, is_said
from harnessctl.score.instructions import fault
from harnessctl.score.losses import is_cut_off, lost_calls
from harnessctl.score.naturalness import findings
from harnessctl.score.phrases import plain, read
from harnessctl.score.query import unaddressed


class Verdicts:
    """What came of the rubrics of one task: whether each was passed by its id, why not, and errors of naturalness."""

    def __init__(self, trajectory: Trajectory, scenario: Scenario, task: Task) -> None:
        """`scenario` has gold; calls of the trajectory that load a skill are of `load_skill`."""
        self._trajectory = trajectory
        self._scenario = scenario
        assert scenario.gold is not None
        self._gold = scenario.gold
        self._lost = lost_calls(trajectory)
        self.findings: list[Finding] = []
        self.passed: dict[str, bool] = {}
        self.reasons: dict[str, list[str]] = {}
        for rubric in task.rubrics:
            why = self._why_not(rubric)
            if why is None:
                continue
            self.passed[rubric.id] = not why
            if why:
                self.reasons[rubric.id] = [why]

    def _why_not(self, rubric: Rubric) -> str | None:
        """Why a rubric was not passed, nothing where it was; null where it asks nothing of this loop."""
        match rubric:
            case Addresses():
                return unaddressed(self._trajectory, self._scenario, rubric)
            case Says():
                return self._unsaid(rubric)
            case Called():
                return self._uncalled(rubric)
            case Ordered():
                return self._disordered(rubric)
            case Natural():
                self.findings = findings(self._trajectory.reply, self._scenario.language)
                return ", ".join(dict.fromkeys(found.kind for found in self.findings))
            case _:
                return fault(self._trajectory.reply, rubric)

    def _unsaid(self, rubric: Says) -> str:
        reply = read(self._trajectory.reply)
        fact = Fact(any=rubric.any, source=rubric.source)
        if is_said(fact, reply):
            return ""
        if self._lost:
            if any(reply.text == plain(text) for text in self._gold.fallbacks):
                return ""
            due, _ = due_facts(replace(self._gold, facts=[fact]), self._trajectory)
            if not due:
                return ""
        return f"not said: {rubric.any[0]}"

    def _uncalled(self, rubric: Called) -> str:
        missing = [[call.tool for call in plan if not self._is_made(call)] for plan in rubric.plans]
        if not all(missing) or is_cut_off(self._gold, self._lost):
            return ""
        return f"not called: {', '.join(f'`{name}`' for name in min(missing, key=len))}"

    def _is_made(self, wanted: GoldCall) -> bool:
        calls = (call for call in self._trajectory.tools if call.status == "ok" or call in self._lost)
        return any(equal_call(call, wanted) for call in calls)

    def _disordered(self, rubric: Ordered) -> str | None:
        is_react = self._trajectory.loop == "react"
        tools = [name for name in rubric.tools if not (is_react and name == LOAD_SKILL)]
        if len(tools) < min(2, len(rubric.tools)):
            return None
        if is_cut_off(self._gold, self._lost):
            return ""
        return misplaced(steps(self._trajectory.tools), tools, first=rubric.first, last=rubric.last)


def steps(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls that came through, or that a fault spoiled, in their order; making a spoiled one again is no step."""
    found: list[ToolCall] = []
    spoiled: list[ToolCall] = []
    for call in calls:
        if call.status != "ok" and call.fault is None:
            continue
        if not any(call.name == other.name and call.arguments == other.arguments for other in spoiled):
            found.append(call)
        if call.fault is not None:
            spoiled.append(call)
    return found


def misplaced(made: Sequence[ToolCall], tools: Sequence[str], *, first: bool = False, last: bool = False) -> str:
    """What is wrong with the order of calls that came through, or nothing; see `records.task.Ordered`."""
    names = [call.name for call in made]
    for name in tools:
        if name not in names:
            return f"`{name}` was not called"
    places = [names.index(name) for name in tools]
    for number in range(1, len(tools)):
        if places[number - 1] > places[number]:
            return f"`{tools[number]}` was called before `{tools[number - 1]}`"
    if first and places[0] > 0:
        return f"`{names[0]}` was called before `{tools[0]}`"
    if last and names[-1] != tools[-1]:
        return f"`{names[-1]}` was called after `{tools[-1]}`"
    return ""
