"""Rules: those of a skill, or the items of a prompt block, that are not masked, as they were but for a recorded wording."""

from __future__ import annotations

from harnessctl.augment.laws.known import Case
from harnessctl.augment.laws.structure.comparing import Fields, Found, others, text
from harnessctl.bundle.state import Rule

_RULE = Fields("id", "protected", "verbatim", "requires", "limit")


def rules(case: Case, place: str, old: list[Rule], new: list[Rule], masked: list[str]) -> Found:
    """Rules, or items: those that are not masked, as they were but for a recorded wording."""
    if new is old:
        return
    before = {rule.id: rule for rule in old}
    for rule in new:
        whole = before.get(rule.id)
        if whole is None or rule.id in masked:
            yield f"{place}/{rule.id}", "is not the parent's" if whole is None else "is masked and there"
            continue
        if rule is whole:
            continue
        yield from others(whole, rule, _RULE, f"{place}/{rule.id}/")
        after = whole.after
        while after is not None and after in masked:
            after = before[after].after
        if rule.after != after:
            yield f"{place}/{rule.id}/after", f"is {rule.after}; what is masked hands {after} on"
        yield from text(case, f"{place}/{rule.id}", whole.text, rule.text)
        if rule.verbatim and rule.text != whole.text:
            yield f"{place}/{rule.id}", "is verbatim and has another wording"
    there = {rule.id for rule in new}
    if len(there) != len(new):
        yield place, "two have one id"
    for name in before.keys() - there - set(masked):
        yield f"{place}/{name}", "is gone, and the record does not mask it"
