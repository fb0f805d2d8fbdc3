"""Query: whether a reply takes up what the viewer asked, right or wrong: ACQ, Addresses the Core Query [4.2, C.3].

    ending      the request ended as gold says, and something was said
    language    it is in the viewer's language
    subject     it says one of what the rubric holds the question to be about, or a number of the unit that is asked for
                (another price is an answer, a false one)
    link        it does not speak of other links alone
    question    it asks back where every right reply does

Where a call of gold was lost to an injected fault any reply in the viewer's language is about as much as can be said.
"""

from __future__ import annotations

from harnessctl.records.scenario import Scenario
from harnessctl.records.task import Addresses
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.effectiveness import asks
from harnessctl.score.language import is_in
from harnessctl.score.losses import lost_calls
from harnessctl.score.phrases import Said, read
from harnessctl.score.values import beside_the_question


def unaddressed(trajectory: Trajectory, scenario: Scenario, rubric: Addresses) -> str:
    """Why the core query is not addressed, or nothing. `scenario` has gold."""
    gold = scenario.gold
    assert gold is not None
    if trajectory.stop != gold.stop:
        return f"the request should have ended `{gold.stop}`, and ended `{trajectory.stop}`"
    if gold.stop != "replied":
        return ""
    text = trajectory.reply
    if not text.strip():
        return "nothing was said"
    if not is_in(text, scenario.language):
        return f"is not in the viewer's language, {scenario.language}"
    if lost_calls(trajectory):
        return ""
    reply = read(text)
    for number in beside_the_question(reply, gold, trajectory):
        return f"speaks of number {number}, which is not what was asked about"
    if rubric.asks and not asks(text):
        return "a question back was due"
    return "" if is_about(reply, rubric) else "says nothing of what was asked about"


def is_about(reply: Said, rubric: Addresses) -> bool:
    """Whether a reply says one of the subjects, or a number of one of the units; a rubric without either is about
    anything."""
    if not rubric.about and not rubric.units:
        return True
    if any(reply.says(phrase) for phrase in rubric.about):
        return True
    return any(measure.unit in rubric.units for measure in reply.measures if measure.unit)
