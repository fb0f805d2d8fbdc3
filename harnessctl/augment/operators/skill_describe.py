"""skill-describe: descriptions of skills in other words [3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text


class SkillDescribe:
    """Targets: the parent's skills."""

    name = "skill-describe"
    dimension: Dimension = "skill-identifier"
    stage: Stage = "reword"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        masked = draft.changes.masked_skills
        return [name for name in _descriptions(draft.state) if name not in masked]

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        text = draft.reworded(_descriptions(draft.state)[target], "description", stream)
        if text is None:
            return False
        draft.changes.texts[f"skills/{target}/description"] = text
        return True


@once
def _descriptions(state: HarnessState) -> dict[str, Text]:
    return {skill.name: skill.description for skill in state.skills}


OPERATOR = SkillDescribe()
