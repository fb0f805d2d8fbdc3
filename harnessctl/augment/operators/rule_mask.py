"""rule-mask: rules of skills left out [3.2].

What always holds: a protected rule stays, and what a rule that stays requires or mentions; so does one that tells a
limit, which hooks and scores hold whether it is told or not. Of what the sample needs nothing goes, nor what hooks
enforce in a skill that it needs. A skill keeps one rule at least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.augment.users import maskable_rules, required_by, rule_users
from harnessctl.bundle.state import HarnessState


class RuleMask:
    """Targets: `skill#rule` that nothing pins, those that others require behind those others.

    A masked rule is no part of the variant: nobody is scored by it.
    """

    name = "rule-mask"
    dimension: Dimension = "skill-content"
    stage: Stage = "mask"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        masked, kept = draft.changes.masked_skills, _kept(draft)
        return [
            target
            for target, skill in maskable_rules(draft.state).items()
            if target not in kept and skill not in masked
        ]

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        skill, _, rule = target.partition("#")
        gone = draft.changes.masked_rules.get(skill, [])
        if any(user not in gone for user in rule_users(draft.state).get(target, ())):
            return False
        if len(gone) + 1 >= _counts(draft.state)[skill]:
            return False
        draft.changes.masked_rules[skill] = [*gone, rule]
        return True


def _kept(draft: Draft) -> frozenset[str] | set[str]:
    if draft.needs is None:
        return frozenset()
    needed = set(draft.needs.rules)
    needed.update(rule for rule in draft.facts.enforced if rule.partition("#")[0] in draft.needs.skills)
    return required_by(draft.state, needed)


@once
def _counts(state: HarnessState) -> dict[str, int]:
    return {skill.name: len(skill.rules) for skill in state.skills}


OPERATOR = RuleMask()
