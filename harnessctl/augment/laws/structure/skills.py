"""Skills: masked, reworded and reordered as the record says, and otherwise the parent's."""

from __future__ import annotations

from harnessctl.augment.laws.known import Case
from harnessctl.augment.laws.structure.comparing import Fields, Found, after_edges, in_order, others, text
from harnessctl.augment.laws.structure.rules import rules
from harnessctl.bundle.state import Skill

_SKILL = Fields("name", "kind", "examples", "allowed_tools")


def check_skills(case: Case) -> Found:
    """Skills that are not as they should be."""
    known, variant, changes = case.known, case.variant, case.changes
    added = {skill.name: skill for skill in changes.added_skills}
    names = [skill.name for skill in variant.skills]
    masked = changes.masked_skills
    due = changes.skill_order or [*(name for name in known.skill_order if name not in masked), *added]
    yield from in_order("skills", names, due)
    for skill in variant.skills:
        old = known.skills.get(skill.name)
        if old is None:
            if added.get(skill.name) != skill:
                yield f"skills/{skill.name}", "is neither the parent's nor in the record"
        elif skill is not old:
            yield from _skill(case, old, skill)
    for name in known.skills.keys() - set(names) - set(masked):
        yield f"skills/{name}", "is gone, and the record does not mask it"


def _skill(case: Case, old: Skill, new: Skill) -> Found:
    place = f"skills/{old.name}/"
    yield from others(old, new, _SKILL, place)
    yield from text(case, f"{place}description", old.description, new.description)
    masked = case.changes.masked_rules.get(old.name, [])
    yield from rules(case, f"{place}rules", old.rules, new.rules, masked)
    if len(old.body) != len(new.body):
        yield f"{place}parts", f"are {len(new.body)}; the parent's are {len(old.body)}"
        return
    position = {rule: number for number, rule in enumerate(case.changes.rule_order.get(old.name, ()))}
    for index, (before, after) in enumerate(zip(old.body, new.body, strict=True)):
        if after is before:
            continue
        yield from text(case, f"{place}parts/{index}", before.text, after.text)
        if after.marker != before.marker:
            yield f"{place}parts/{index}", "has another marker"
        due = [rule for rule in before.rules if rule not in masked]
        if sorted(after.rules) != sorted(due):
            yield f"{place}parts/{index}", f"lists {', '.join(after.rules)}; there should be {', '.join(due)}"
        elif after.rules != (sorted(due, key=lambda rule: position.get(rule, -1)) if position else due):
            yield f"{place}parts/{index}", "is in an order that the record does not have"
    shown = [rule for part in new.body for rule in part.rules]
    yield from after_edges(f"{place}rules", old.rules, shown)
