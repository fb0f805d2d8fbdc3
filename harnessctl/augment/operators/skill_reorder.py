"""skill-reorder: the list of skills in another order. Beyond the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.order import reordered
from harnessctl.augment.stream import Stream


class SkillReorder:
    """Target: `skills`, the whole list, with those that are added."""

    name = "skill-reorder"
    dimension: Dimension = "skill-identifier"
    stage: Stage = "reorder"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return ("skills",) if len(draft.state.skills) > 1 else ()

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        changes = draft.changes
        here = changes.skill_order or [
            skill.name
            for skill in (*draft.state.skills, *changes.added_skills)
            if skill.name not in changes.masked_skills
        ]
        order = reordered(here, stream)
        if order is None:
            return False
        changes.skill_order = order
        return True


OPERATOR = SkillReorder()
