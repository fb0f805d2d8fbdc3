"""wrong-skill: loads another reply skill than the one that fits, and does everything else right."""

from __future__ import annotations

from dataclasses import replace

from harnessctl.augment.stream import Stream
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.flaws import Flaw
from harnessctl.simulate.plan import Plan, Planner, Step


def _plan(plan: Plan, scenario: Scenario, planner: Planner, stream: Stream) -> Plan:
    gold = scenario.gold
    assert gold is not None
    others = [
        skill.name
        for skill in planner.state.skills
        if skill.kind == "reply" and skill.name not in (*gold.skills, *gold.strategies)
    ]
    fitting = {name for name in plan.skills if planner.skills[name].kind == "reply"}
    if not others or not fitting:
        return plan
    other = stream.choice(others)

    def swapped(step: Step) -> Step:
        if step.why != "skill" or step.arguments[planner.load_skill_argument] not in fitting:
            return step
        return replace(step, arguments={planner.load_skill_argument: other})

    def bent(group: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple({step.key: step for step in map(swapped, group)}.values())

    return replace(plan, rounds=tuple(bent(group) for group in plan.rounds))


FLAW = Flaw(name="wrong-skill", lowers=frozenset({"skill_selection"}), plan=_plan)
