"""skill-synthetic: skills of the same trade on matters that nobody asks about [3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.skill_pool import add_from_pool
from harnessctl.augment.stream import Stream

#: From and to, where the envelope says nothing.
COUNT = (1, 3)


class SkillSynthetic:
    """Target: `skills`; `count` skills are put among them at random places.

    They are on offer and that is all: no gold names one, so that an agent that chooses by what a skill is for scores as
    before.
    """

    name = "skill-synthetic"
    dimension: Dimension = "skill-identifier"
    stage: Stage = "add"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset({"count"})

    def targets(self, draft: Draft) -> Sequence[str]:
        return ("skills",) if draft.state.skills else ()

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        return add_from_pool("synthetic", draft, settings, stream, COUNT)


OPERATOR = SkillSynthetic()
