"""skill-mask: skills left out [3.2].

What always holds: a skill that something which stays names is not masked, nor one that the sample needs; a kind of skill
that the harness offers keeps one at least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.augment.users import skill_users
from harnessctl.bundle.state import HarnessState


class SkillMask:
    """Targets: skills that nothing pins. One that other skills name goes only when all of those have gone.

    Nobody loads a skill that no scenario needs, so that what is left out is missed by none.
    """

    name = "skill-mask"
    dimension: Dimension = "skill-identifier"
    stage: Stage = "mask"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        pinned = draft.facts.pinned_skills
        needed = _needed(draft)
        return [name for name in _kinds(draft.state) if name not in pinned and name not in needed]

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        kinds, masked = _kinds(draft.state), draft.changes.masked_skills
        if not skill_users(draft.state).get(target, frozenset()).issubset(masked):
            return False
        if not any(kind == kinds[target] for name, kind in kinds.items() if name != target and name not in masked):
            return False
        masked.append(target)
        return True


def _needed(draft: Draft) -> set[str]:
    if draft.needs is None:
        return set()
    return {*draft.needs.skills, *(rule.partition("#")[0] for rule in draft.needs.rules)}


@once
def _kinds(state: HarnessState) -> dict[str, str]:
    """Skill to kind; a skill that others name stands behind them."""
    users = skill_users(state)
    names = sorted((skill.name for skill in state.skills), key=lambda name: name in users)
    kinds = {skill.name: skill.kind for skill in state.skills}
    return {name: kinds[name] for name in names}


OPERATOR = SkillMask()
