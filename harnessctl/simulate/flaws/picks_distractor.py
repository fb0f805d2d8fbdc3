"""picks-distractor: asks a distractor that is like the tool which is due, and believes what it tells.

Where the fact that was asked for is a number, it says one of the distractor's; another fact it does not hear, and says what
may be said without it.
"""

from __future__ import annotations

from dataclasses import replace

import orjson

from harnessctl.augment.stream import Stream
from harnessctl.numerals import known_numbers, numbers_in
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.flaws import Flaw, Saying
from harnessctl.simulate.plan import Plan, Planner, Step

#: Small numbers are mostly counts.
_LEAST = 3


def _twins(scenario: Scenario) -> dict[str, str]:
    task = scenario.task
    return {} if task is None else {d.like: d.tool for d in reversed(task.distractors) if d.near == "twin"}


def _plan(plan: Plan, scenario: Scenario, planner: Planner, stream: Stream) -> Plan:
    twins = _twins(scenario)
    due = [step for step in plan.steps if step.why == "gold" and step.tool in twins]
    if not due:
        return plan
    wrong = stream.choice(due)
    other = Step(twins[wrong.tool], wrong.arguments)
    rounds = tuple(tuple(other if step is wrong else step for step in group) for group in plan.rounds)
    return replace(plan, rounds=rounds, lost=(*plan.lost, wrong.tool))


def _reply(saying: Saying) -> str:
    gold, twins = saying.scenario.gold, set(_twins(saying.scenario).values())
    told = [text for text, made in zip(saying.turn.results, saying.turn.made, strict=True) if made.tool in twins]
    if gold is None or not told:
        return saying.text
    heard = [value for text in told for value in known_numbers(_read(text)) if float(value) >= _LEAST]
    for reply in gold.replies:
        due = [n for fact in gold.facts for text in fact.any for n in numbers_in(text) if n.size >= _LEAST]
        said = [number.written for number in due if number.written in reply]
        right = {value for number in due for way in number.ways for value in way}
        wrong = [value for value in heard if value not in right]
        if said and wrong:
            return reply.replace(said[0], wrong[-1])
    return saying.text


def _read(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


FLAW = Flaw(
    name="picks-distractor",
    lowers=frozenset({"TC", "RC"}),
    spares=frozenset({"skill_selection", "FI", "TCO"}),
    plan=_plan,
    reply=_reply,
    only_tasks=True,
)
