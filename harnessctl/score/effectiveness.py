"""Effectiveness: whether the reply gives the viewer what was asked for: 0, 0.5 or 1 [4.2, 3.4].

The paper's judge grades 'addresses the viewer's intent and provides useful information'. Here, by rules:

    an ending without a reply is due (silence, refusal)    1 if the request ended so, else 0
    nothing was said                                       0
    facts are due                                          1 all of them said, 0.5 some, 0 none
    every fact is waived (its source failed for good)      1: what is left to do is to say something else
    a fallback of gold is said, a call was lost for good   1: gold has it for that
    no fact is due (talk, a question back)                 1; 0 where every right reply asks and this one does not

It departs from the paper in that detail beyond the facts ('appropriate detail and actionability') earns and costs
nothing: rules cannot tell good detail from padding.
"""

from __future__ import annotations

from harnessctl.records.scenario import Gold, Scenario
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.facts import due_facts, is_said
from harnessctl.score.losses import lost_calls
from harnessctl.score.phrases import Said, plain, read

_ASKING = ("?", "？", "吗", "呢", "哪", "几号", "什么")


def effectiveness(trajectory: Trajectory, scenario: Scenario) -> tuple[float, list[str]]:
    """0, 0.5 or 1, and what was missing. `scenario` has gold."""
    gold = scenario.gold
    assert gold is not None
    if gold.stop != "replied":
        if trajectory.stop == gold.stop:
            return 1.0, []
        return 0.0, [f"the request should have ended `{gold.stop}`, and ended `{trajectory.stop}`"]
    if not trajectory.reply.strip():
        return 0.0, [f"nothing was said; the request ended `{trajectory.stop}`"]
    reply = read(trajectory.reply)
    due, waived = due_facts(gold, trajectory)
    if due and _is_fallback(reply, gold) and lost_calls(trajectory):
        return 1.0, []
    if due:
        unsaid = [fact.any[0] for fact in due if not is_said(fact, reply)]
        if not unsaid:
            return 1.0, []
        return (0.5 if len(unsaid) < len(due) else 0.0), [f"not said: {text}" for text in unsaid]
    if not waived and asks_back(gold) and not asks(trajectory.reply):
        return 0.0, ["a question back was due"]
    return 1.0, []


def _is_fallback(reply: Said, gold: Gold) -> bool:
    return any(reply.text == plain(text) for text in gold.fallbacks)


def asks_back(gold: Gold) -> bool:
    """Whether every right reply is a question."""
    return bool(gold.replies) and all(asks(reply) for reply in gold.replies)


def asks(text: str) -> bool:
    """Whether a text asks something."""
    return any(sign in text for sign in _ASKING)
