"""rule-reorder: the rules of a list in another order, each behind the one that its `after` names [3.2].

What always holds: a rule stays in its own list; a numbered list, whose order is a part of what it says, stays as it is
unless `numbered` allows it; so do the rules of a skill of which one speaks of others by their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.order import edges_left, reordered
from harnessctl.augment.stream import Stream
from harnessctl.augment.users import told_by_place
from harnessctl.bundle.state import HarnessState, Skill


class RuleReorder:
    """Targets: skills of two rules or more."""

    name = "rule-reorder"
    dimension: Dimension = "skill-content"
    stage: Stage = "reorder"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"numbered": False}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        masked = draft.changes.masked_skills
        return [name for name in _skills(draft.state) if name not in masked]

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        skill = _skills(draft.state)[target]
        numbered = settings.options.get("numbered", self.options["numbered"])
        masked = frozenset(draft.changes.masked_rules.get(target, ()))
        edges = edges_left(skill.rules, masked)
        order: list[str] = []
        moved = False
        for part in skill.body:
            here = [rule for rule in part.rules if rule not in masked]
            new = reordered(here, stream, after=edges) if numbered or part.marker == "-" else None
            moved = moved or new is not None
            order += here if new is None else new
        if moved:
            draft.changes.rule_order[target] = order
        return moved


@once
def _skills(state: HarnessState) -> dict[str, Skill]:
    by_place = told_by_place(state)
    return {skill.name: skill for skill in state.skills if len(skill.rules) > 1 and skill.name not in by_place}


OPERATOR = RuleReorder()
