"""redundant-call: looks up again what it has just been told; where nothing is looked up, something that nobody asked for."""

from __future__ import annotations

from dataclasses import replace

from harnessctl.augment.stream import Stream
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.flaws import Flaw, needless_calls
from harnessctl.simulate.plan import Plan, Planner


def _plan(plan: Plan, scenario: Scenario, planner: Planner, stream: Stream) -> Plan:
    limits = planner.limits
    made = len(plan.steps)
    if plan.ends or made + 1 >= limits.get("max_tool_calls", float("inf")):
        return plan
    again = [
        step
        for step in plan.steps
        if step.why == "gold" and planner.tools[step.tool].effect == "none" and limits["max_repeats"] > 2
    ]
    again = again or needless_calls(scenario, planner)
    if not again:
        return plan
    step = stream.choice(again)
    if len(plan.rounds) + 1 < limits["max_rounds"]:
        return replace(plan, rounds=(*plan.rounds, (step,)))
    return replace(plan, rounds=(*plan.rounds[:-1], (*plan.rounds[-1], step)))


FLAW = Flaw(
    name="redundant-call",
    lowers=frozenset({"tool_rationality"}),
    spares=frozenset({"accuracy", "effectiveness", "skill_selection", "ACQ", "RC", "TC", "FI"}),
    plan=_plan,
)
