"""Score: what a scorer says of one trajectory, one line of JSON Lines [4.2, 3.4].

What always holds: null is 'no score', a value of its own and never 0; every score below 1 has its reasons.
"""

from __future__ import annotations

import msgspec

FORMAT = "harnessctl/score.v1"

#: The dimensions, in the order of tables: the first two are of the reply, the others of the way there.
DIMENSIONS = ("accuracy", "effectiveness", "tool_rationality", "skill_selection")


class Score(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT):
    """`accuracy` 0 or 1; `effectiveness` 0, 0.5 or 1; `tool_rationality` and `skill_selection` in [0, 1]; null: no score.

    `id` is the trajectory's. `variant` is the number of the harness variant, null for the original; `repeat` counts from 0
    how often the scenario was answered before. `reasons` maps a
    dimension to what cost it something, or to why there is no score.
    """

    id: str
    scenario: str
    scorer: str
    bundle: str
    accuracy: float | None = None
    effectiveness: float | None = None
    tool_rationality: float | None = None
    skill_selection: float | None = None
    reasons: dict[str, list[str]] = {}
    intent: str = ""
    family: str = ""
    language: str = ""
    variant: int | None = None
    repeat: int = 0
    faults: list[str] = []

    @property
    def average(self) -> float | None:
        """AVG: the mean of Accuracy and Effectiveness, before rounding; null unless both are there."""
        if self.accuracy is None or self.effectiveness is None:
            return None
        return (self.accuracy + self.effectiveness) / 2
