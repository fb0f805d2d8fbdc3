"""Scorer: what judges trajectories by their gold; the rules of this package, or a harness (in evaluate)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from harnessctl.bundle.variation import Variation
from harnessctl.records.scenario import Scenario
from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory

#: Rows of the world's tables after the request, by table; what `end_state` of gold is compared with.
Tables = Mapping[str, list[dict[str, Any]]]


class Scorer(Protocol):
    """Scores one trajectory. Equal arguments give equal scores, but for a judge that samples."""

    name: str

    def score(
        self,
        trajectory: Trajectory,
        scenario: Scenario,
        *,
        variation: Variation | None = None,
        after: Tables | None = None,
    ) -> Score:
        """The score; dimensions that cannot be judged are null with their reason.

        `after` are the tables that `gold.end_state` names; without it end states are not judged.
        """
        ...
