"""skill-rename: skills under new names, those too that the variant adds. Code, hooks and gold go on with the canonical
ones [3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.mentions import named_bare
from harnessctl.augment.names import STYLES
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream


class SkillRename:
    """Targets: skills that are on offer and that no text names bare. An added one is renamed as often as any, so that no name gives it away."""

    name = "skill-rename"
    dimension: Dimension = "skill-identifier"
    stage: Stage = "rename"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"styles": list(STYLES)}
    allowed: Mapping[str, Sequence[str]] = {"styles": STYLES}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        left_out = {*draft.changes.masked_skills, *named_bare(draft.state)}
        skills = (*draft.state.skills, *draft.changes.added_skills)
        return [skill.name for skill in skills if skill.name not in left_out]

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        styles = settings.options.get("styles", self.options["styles"])
        draft.changes.skills[target] = draft.names.skill(target, stream, styles)
        return True


OPERATOR = SkillRename()
