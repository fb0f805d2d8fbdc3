"""wrong-order: makes the calls that are asked for in another order; those that write stay where hooks let them through."""

from __future__ import annotations

from dataclasses import replace

from harnessctl.augment.stream import Stream
from harnessctl.records.scenario import Scenario
from harnessctl.records.task import Ordered
from harnessctl.score.calls import LOAD_SKILL
from harnessctl.simulate.flaws import Flaw
from harnessctl.simulate.plan import Plan, Planner


def _plan(plan: Plan, scenario: Scenario, planner: Planner, stream: Stream) -> Plan:
    task = scenario.task
    for rubric in [] if task is None else task.rubrics:
        if not isinstance(rubric, Ordered):
            continue
        names = [planner.load_skill if name == LOAD_SKILL else name for name in rubric.tools]
        steps = plan.steps
        named = [step for step in steps if step.tool in names]
        if len(named) < 2 or any(planner.tools[step.tool].effect == "write" for step in named):
            continue
        turned = iter(reversed(named))
        order = [next(turned) if step in named else step for step in steps]
        # All in one message: what was asked about order is all that this flaw does wrong.
        return replace(plan, rounds=(tuple(order),)) if len(plan.rounds) == 1 else replace(
            plan, rounds=tuple((step,) for step in order) if len(order) < planner.limits["max_rounds"] else (tuple(order),)
        )  # fmt: skip
    return plan


FLAW = Flaw(name="wrong-order", lowers=frozenset({"TCO"}), plan=_plan, only_tasks=True)
