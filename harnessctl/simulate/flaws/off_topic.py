"""off-topic: does everything that is due, and then speaks of something else."""

from __future__ import annotations

from harnessctl.simulate.flaws import Flaw, Saying

_SAID = {
    "en": ("What a lovely evening it is with all of you.", "Did everybody have a good dinner today?"),
    "zh": ("今晚的气氛真好，谢谢大家陪着。", "大家今天都吃过晚饭了吗？"),
}


def _reply(saying: Saying) -> str:
    return saying.stream.choice(_SAID.get(saying.scenario.language.partition("-")[0], _SAID["en"]))


FLAW = Flaw(
    name="off-topic",
    lowers=frozenset({"effectiveness", "ACQ", "RC"}),
    spares=frozenset({"accuracy", "tool_rationality", "skill_selection", "TC", "TCO"}),
    reply=_reply,
)
