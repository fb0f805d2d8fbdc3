"""Judge: which of a teacher's trajectories are learnt from [3.4, stage 1; C.1].

What always holds: what has no score is not accepted, and its reason is not that of a bad one; the judge sees only what
the scorer saw.
"""

from __future__ import annotations

from typing import Protocol

from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.rules import UNSCORED
from harnessctl.train.sft.config import JudgeConfig


class Judge(Protocol):
    """Accepts or rejects candidates. Equal arguments give equal answers."""

    name: str

    def rejection(self, trajectory: Trajectory, score: Score) -> str | None:
        """Why a candidate is not learnt from, in a word or two that are counted; None: it is."""
        ...


class RuleJudge:
    """Bounds on the scores of the rules (score/rules)."""

    name = "rules"

    def __init__(self, config: JudgeConfig) -> None:
        self._bounds: dict[str, float] = {
            name: bound for name in DIMENSIONS if (bound := getattr(config, name)) is not None
        }

    def rejection(self, trajectory: Trajectory, score: Score) -> str | None:
        """`no score: DIMENSION` or `low DIMENSION`, of the first that does not reach its bound."""
        for name, bound in self._bounds.items():
            value: float | None = getattr(score, name)
            if value is None:
                return f"no score: {name}"
            if value < bound:
                return f"low {name}"
        return None


def failure(trajectory: Trajectory) -> str | None:
    """How the teacher itself failed, so that another try may help; None: it answered."""
    return f"teacher: {trajectory.stop}" if trajectory.stop in UNSCORED else None
