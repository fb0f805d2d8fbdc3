"""Plan: what an agent that does everything right does for a scenario, worked out from gold and the harness's hooks [3.3].

What always holds: names and arguments are canonical; every call that a hook demands stands before the call, or the
reply, that it demands it for; the rounds, and a round for the reply, fit `max_rounds`. A plan depends on the scenario
and the harness state alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from harnessctl.bundle.files import Bundle
from harnessctl.bundle.state import HarnessState
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.drafting import Drafting
from harnessctl.simulate.ground import Ground
from harnessctl.simulate.steps import Plan, PlanBlocked, Step

__all__ = ["Plan", "PlanBlocked", "Planner", "Step", "complete"]


def complete(scenario: Scenario, harness: Bundle | HarnessState) -> Plan:
    """The plan of one scenario; PlanBlocked says what stands in its way. For many, make one Planner."""
    return Planner(harness.state if isinstance(harness, Bundle) else harness).plan(scenario)


class Planner(Ground):
    """Plans for one harness state. Safe to use from several threads: nothing is kept between plans but the last one."""

    _last: tuple[Scenario, Plan] | None = None

    def plan(self, scenario: Scenario) -> Plan:
        """The scenario's plan; by the first of gold's alternatives where `calls` themselves are blocked.

        Asked again for the same object, which nobody altered but to complete its gold, it gives the same plan.
        """
        last = self._last
        if last is not None and last[0] is scenario:
            return last[1]
        plan = self._draft(scenario)
        self._last = scenario, plan
        return plan

    def _draft(self, scenario: Scenario) -> Plan:
        gold = scenario.gold
        if gold is None:
            raise PlanBlocked("gold", "the scenario has no gold: a person has yet to say what is right")
        blocked: PlanBlocked | None = None
        for calls in (gold.calls, *gold.alternatives):
            try:
                return Drafting(self, scenario, gold, calls).finish()
            except PlanBlocked as error:
                blocked = blocked or error
        assert blocked is not None
        raise blocked

    def is_wanting(self, scenario: Scenario, step: Step, done: Sequence[Step]) -> bool:
        """Whether a hook would send a call back for lack of another, were only `done` made before it."""
        assert scenario.gold is not None
        moment = Drafting(self, scenario, scenario.gold, ()).moment("pre_tool", step, done=done)
        return any(guard.find(moment).state == "wanting" for guard in self.demands.before_calls.get(step.tool, ()))
