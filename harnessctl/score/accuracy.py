"""Accuracy: whether the reply is right and keeps the instructions: 0 or 1 [4.2, 3.4].

The paper's judge 'penalizes factual errors, unsupported product claims, false promises, and capability overreach', and
asks whether the reply 'follows the instructions defined in prompts or skills'. Here it is 1 unless a rule is broken:

    ending         the request ended otherwise than gold says
    claims         something is said that gold forbids
    numbers        a number stands in no result, no input of the request and nothing of gold
    values         another value is said where a fact is due (another price)
    links          only links are spoken of that neither the request nor gold has to do with (`link 3 is 89 yuan` for link 4)
    length         the reply is over the effective `reply_max_chars`
    route          it went out publicly where it is private, or the other way round
    language       it is in another language than the viewer's
    writes         a call changed something that gold does not ask for
    end state      the tables are not as gold has them; judged where they are given

Where an injected fault kept a due call from ever succeeding (see `losses`), route and end state are not judged.

It departs from the paper in that instructions beyond these are not judged: the wording and order that a rule of a skill
asks for are for a judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harnessctl.records.scenario import Gold, Scenario
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.calls import align, equal_call, plans
from harnessctl.score.end_state import unmet
from harnessctl.score.facts import is_said
from harnessctl.score.language import is_in
from harnessctl.score.losses import lost_calls
from harnessctl.score.phrases import read
from harnessctl.score.scorer import Tables
from harnessctl.score.values import beside_the_question, in_place_of, unsourced


def accuracy(
    trajectory: Trajectory, scenario: Scenario, *, after: Tables | None = None, writes: Collection[str] = ()
) -> tuple[float, list[str]]:
    """0 or 1, and each rule that was broken. `writes` names the tools that write; `scenario` has gold.

    Where gold has an end state that is not judged, a reason says why.
    """
    gold = scenario.gold
    assert gold is not None
    is_hindered = _is_hindered(gold, trajectory)
    broken: list[str] = []
    if trajectory.stop != gold.stop:
        broken.append(f"the request should have ended `{gold.stop}`, and ended `{trajectory.stop}`")
    if trajectory.reply.strip():
        broken += _of_reply(trajectory, scenario, gold)
    broken += [f"`{name}` changed what nobody asked to change" for name in _overreach(trajectory, gold, writes)]
    unjudged: list[str] = []
    if gold.stop == trajectory.stop == "replied" and trajectory.route != gold.route and not is_hindered:
        broken.append(f"went out {trajectory.route}, and is {gold.route}")
    if gold.end_state:
        if is_hindered:
            unjudged.append("the end state was not judged: a call that it takes was lost to a fault")
        elif after is None:
            unjudged.append("the end state was not judged: no tables were given")
        else:
            broken += unmet(gold, after)
    return (0.0 if broken else 1.0), broken + unjudged


def _of_reply(trajectory: Trajectory, scenario: Scenario, gold: Gold) -> Iterator[str]:
    text = trajectory.reply
    reply = read(text)
    for claim in gold.claims:
        if reply.holds(claim):
            yield f"claims what must not be said: {claim}"
    for number in unsourced(reply, gold, trajectory):
        yield f"no source has the number {number}"
    for fact in gold.facts:
        if not is_said(fact, reply):
            for number in in_place_of(fact, reply, text, gold, trajectory):
                yield f"says {number} where {fact.any[0]} is due"
    for number in beside_the_question(reply, gold, trajectory):
        yield f"speaks of number {number}, which is not what was asked about"
    limit = trajectory.limits.get("reply_max_chars")
    if limit is not None and len(text) > limit:
        yield f"{len(text)} characters; at most {limit} may be said"
    if not is_in(text, scenario.language):
        yield f"is not in the viewer's language, {scenario.language}"


def _is_hindered(gold: Gold, trajectory: Trajectory) -> bool:
    """Whether a call of gold was lost to a fault, or one that hooks demand before it."""
    lost = lost_calls(trajectory)
    if not lost:
        return False
    due = [*gold.prelude, *(call for plan in plans(gold) for call in plan)]
    return any(equal_call(call, wanted) for call in lost for wanted in due)


def _overreach(trajectory: Trajectory, gold: Gold, writes: Collection[str]) -> list[str]:
    """The tools that wrote unasked, by the plan that asks for the most of them."""
    if not any(call.name in writes and call.status == "ok" for call in trajectory.tools):
        return []
    found = (
        [call.name for call in align(trajectory.tools, due, gold).unasked if call.name in writes] for due in plans(gold)
    )
    return min(found, key=len)
