"""Needs: what a scenario's gold takes of a harness, so that a variant without it is not paired with it [5d, 5e]."""

from __future__ import annotations

from harnessctl.bundle.state import HarnessState
from harnessctl.records.scenario import Gold, GoldCall, Needs, Scenario
from harnessctl.simulate.plan import PlanBlocked, Planner


class NeedsOf:
    """Works out the needs of gold on one harness."""

    def __init__(self, state: HarnessState) -> None:
        self._rules: dict[str, list[str]] = {}
        for hook in state.hooks:
            for rule in hook.enforces:
                self._rules.setdefault(rule.partition("#")[0], []).append(rule)
        self._loader = [tool.name for tool in state.tools if (tool.run or {}).get("builtin") == "load_skill"]

    def __call__(self, gold: Gold, *, rounds: int | None = None) -> Needs:
        """Skills that are loaded, rules of them that hooks enforce, tools that are called, and the room that it takes.

        `rounds` are those of a plan; without one they are a bound, each call in a round of its own.
        """
        calls = [*gold.prelude, *gold.calls]
        return Needs(
            skills=list(gold.skills),
            rules=list(dict.fromkeys(rule for skill in gold.skills for rule in self._rules.get(skill, ()))),
            tools=list(dict.fromkeys([*(self._loader if gold.skills else []), *(call.tool for call in calls)])),
            min_chars=min(map(len, gold.replies), default=0),
            min_rounds=len(calls) + 2 if rounds is None else rounds,
        )


class Completion:
    """Completes the gold of scenarios on one harness: the calls that hooks demand (`prelude`), and the needs."""

    def __init__(self, state: HarnessState) -> None:
        self.planner = Planner(state)
        self._needs = NeedsOf(state)

    def __call__(self, scenario: Scenario, gold: Gold) -> None:
        """Fill in `prelude` and `needs` of a scenario's gold. Where no plan can be made `world check` says why."""
        rounds: int | None = None
        try:
            plan = self.planner.plan(scenario)
            gold.prelude = [GoldCall(tool=s.tool, arguments=s.arguments) for s in plan.steps if s.why == "prelude"]
            rounds = plan.min_rounds
        except PlanBlocked:
            gold.prelude = []
        gold.needs = self._needs(gold, rounds=rounds)
