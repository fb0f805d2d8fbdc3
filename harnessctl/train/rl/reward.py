"""Reward: what grades a rollout. Scores of the rules today; a judge may take their place behind the same Protocol."""

from __future__ import annotations

from typing import Protocol

from harnessctl.evaluate.items import Item
from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory


class Reward(Protocol):
    """Grades rollouts. Null in a dimension is 'no score', which is dropped and never taken for 0."""

    async def grade(self, item: Item, trajectory: Trajectory, score: Score) -> Score:
        """The rewards of a trajectory, of which the rules have given `score` already."""
        ...


class RuleReward:
    """The scores of the rules as they are [4.2, 3.4]."""

    async def grade(self, item: Item, trajectory: Trajectory, score: Score) -> Score:
        """`score` itself."""
        del item, trajectory
        return score
