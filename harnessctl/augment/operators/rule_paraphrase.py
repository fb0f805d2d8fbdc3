"""rule-paraphrase: rules of skills in other words; a verbatim one keeps its own [3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text


class RuleParaphrase:
    """Targets: `skill#rule`."""

    name = "rule-paraphrase"
    dimension: Dimension = "skill-content"
    stage: Stage = "reword"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        masked_skills, masked_rules = draft.changes.masked_skills, draft.changes.masked_rules
        found: list[str] = []
        for skill, rules in _texts(draft.state).items():
            if skill not in masked_skills:
                gone = masked_rules.get(skill)
                found += [target for target, (rule, _) in rules.items() if gone is None or rule not in gone]
        return found

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        skill = target.partition("#")[0]
        rule, text = _texts(draft.state)[skill][target]
        new = draft.reworded(text, "rule", stream)
        if new is None:
            return False
        draft.changes.texts[f"skills/{skill}/rules/{rule}"] = new
        return True


@once
def _texts(state: HarnessState) -> dict[str, dict[str, tuple[str, Text]]]:
    """By skill: target to the rule's id and text."""
    return {
        skill.name: {f"{skill.name}#{rule.id}": (rule.id, rule.text) for rule in skill.rules if not rule.verbatim}
        for skill in state.skills
    }


OPERATOR = RuleParaphrase()
