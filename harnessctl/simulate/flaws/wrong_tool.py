"""wrong-tool: asks another tool than the one that tells the fact, does not hear it, and says something without it.

What the wrong tool happens to tell may suffice for a reply of gold; and where gold has nothing but a change, the change is
not made. Without a call in gold there is nothing to do wrong.
"""

from __future__ import annotations

from dataclasses import replace

from harnessctl.augment.stream import Stream
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.flaws import Flaw, other_calls
from harnessctl.simulate.plan import Plan, Planner


def _plan(plan: Plan, scenario: Scenario, planner: Planner, stream: Stream) -> Plan:
    asked = [step for step in plan.steps if step.why == "gold" and planner.tools[step.tool].final is None]
    looked_up = [step for step in asked if planner.tools[step.tool].effect == "none"]
    if not asked:
        return plan
    wrong = stream.choice(looked_up or asked)
    others = other_calls(wrong, scenario, planner)
    if not others:
        return plan
    other = stream.choice(others)
    rounds = tuple(tuple(other if step is wrong else step for step in group) for group in plan.rounds)
    return replace(plan, rounds=rounds, lost=(*plan.lost, wrong.tool))


FLAW = Flaw(
    name="wrong-tool",
    lowers=frozenset({"tool_rationality", "effectiveness", "TC", "RC", "TCO"}),
    spares=frozenset({"skill_selection"}),
    plan=_plan,
)
