"""over-long: says more than may be said, and says it again when it is sent back.

Where a hook keeps it back for good, nothing is said, and the viewer is not helped either.
"""

from __future__ import annotations

from harnessctl.simulate.flaws import Flaw, Saying
from harnessctl.simulate.wording import neutral

_LIMIT = "reply_max_chars"
#: How far beyond the limit, or beyond a right reply where the harness has none.
_TIMES = 1.5


def _reply(saying: Saying) -> str:
    limit = saying.state.limits.get(_LIMIT)
    length = _TIMES * (limit.value if limit is not None else 4 * len(saying.text))
    sentences = [saying.text]
    more = neutral(saying.scenario.language)
    while len(" ".join(sentences)) <= length:
        sentences.append(more[len(sentences) % len(more)])
    return " ".join(sentences)


FLAW = Flaw(
    name="over-long",
    lowers=frozenset({"accuracy", "ACQ", "RC", "FI"}),
    spares=frozenset({"tool_rationality", "skill_selection", "TC", "TCO"}),
    reply=_reply,
)
