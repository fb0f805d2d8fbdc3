"""Score: what a scorer says of one trajectory, one line of JSON Lines [4.2, 3.4].

What always holds: null is 'no score', a value of its own and never 0; every score below 1 has its reasons.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from harnessctl.records.task import metric_of

FORMAT = "harnessctl/score.v1"

#: The dimensions, in the order of tables: the first two are of the reply, the others of the way there.
DIMENSIONS = ("accuracy", "effectiveness", "tool_rationality", "skill_selection")


class Finding(msgspec.Struct, kw_only=True):
    """An error of naturalness: its kind, and where in the reply it stands (characters, the end excluded)."""

    kind: str
    start: int
    end: int
    text: str


class Score(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT):
    """`accuracy` 0 or 1; `effectiveness` 0, 0.5 or 1; `tool_rationality` and `skill_selection` in [0, 1]; null: no score.

    `id` is the trajectory's. `variant` is the number of the harness variant, null for the original; `repeat` counts from 0
    how often the scenario was answered before. `rubrics` says of each rubric of the item (by its id) whether it was
    passed; empty where there is none, or no score. `findings` are errors of naturalness, where they were looked for.
    `level` and `arm` are the task's. `reasons` maps a dimension or a rubric to what cost it something, or to why there is
    no score.
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
    rubrics: dict[str, bool] = {}
    findings: list[Finding] = []
    level: str = ""
    arm: Literal["", "before", "after"] = ""

    @property
    def average(self) -> float | None:
        """AVG: the share of the item's rubrics that were passed [C.3], or else the mean of Accuracy and Effectiveness, before
        rounding; null where either is missing."""
        if self.rubrics:
            return sum(self.rubrics.values()) / len(self.rubrics)
        if self.accuracy is None or self.effectiveness is None:
            return None
        return (self.accuracy + self.effectiveness) / 2

    def value(self, metric: str) -> float | None:
        """A dimension, `average`, or the share of the rubrics of a metric (`RC`) that were passed; null: no score."""
        if metric in DIMENSIONS or metric == "average":
            return getattr(self, metric)
        passed = [value for rubric, value in self.rubrics.items() if metric_of(rubric) == metric]
        return sum(passed) / len(passed) if passed else None
