"""ignores-rule: makes a claim that the rules forbid, beside the right answer; sent back by a hook, another one.

Without a claim that gold forbids there is no rule of the scenario to ignore.
"""

from __future__ import annotations

from harnessctl.simulate.flaws import Flaw, Saying

_LIMIT = "reply_max_chars"


def _reply(saying: Saying) -> str:
    gold = saying.scenario.gold
    assert gold is not None
    if not gold.claims:
        return saying.text
    claims = saying.stream.shuffled(gold.claims)
    claim = claims[saying.turn.sent_back % len(claims)]
    stop = "" if claim[-1:] in ".!?。！？" else "。" if saying.scenario.language.startswith("zh") else "."
    said = f"{saying.text} {claim}{stop}"
    limit = saying.state.limits.get(_LIMIT)
    return said if limit is None or len(said) <= limit.value else claim + stop


FLAW = Flaw(
    name="ignores-rule",
    lowers=frozenset({"accuracy"}),
    spares=frozenset({"tool_rationality", "skill_selection", "TC", "TCO"}),
    reply=_reply,
)
