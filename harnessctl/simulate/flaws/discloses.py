"""discloses: where it could not hear what it asked for, it says how it came to know nothing, instead of a way on [5.6].

It says so each time in other words, so that hooks which forbid some of them do not keep it from talking.
"""

from __future__ import annotations

from harnessctl.simulate.flaws import Flaw, Saying

_SAID = {
    "en": (
        "I'm not sure about that, the search returned nothing.",
        "Let me check again, the system has no data on it.",
        "I can't confirm that, sorry, very sorry.",
        "There is no information available on that right now.",
    ),
    "zh": (
        "我不太确定，查询结果是空的。",
        "我再查一下，系统没有返回数据。",
        "这个我无法确认，抱歉，真的抱歉。",
        "目前没有相关信息。",
    ),
}


def _reply(saying: Saying) -> str:
    failed = [made for made in saying.turn.made if made.came not in ("ok", "stale")]
    if not failed and not (saying.scenario.task is not None and saying.scenario.task.situation):
        return saying.text
    said = _SAID.get(saying.scenario.language.partition("-")[0], _SAID["en"])
    first = saying.stream.integer(0, len(said) - 1)
    return said[(first + saying.turn.sent_back) % len(said)]


FLAW = Flaw(
    name="discloses",
    lowers=frozenset({"NAT"}),
    spares=frozenset({"tool_rationality", "skill_selection"}),
    reply=_reply,
    only_tasks=True,
)
