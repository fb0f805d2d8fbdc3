"""Law d: what must stay is not masked, and a sample is paired with no variant that takes from it what it needs."""

from __future__ import annotations

from collections.abc import Iterator

from harnessctl.augment.laws.broken import Broken
from harnessctl.augment.laws.known import Case
from harnessctl.bundle.state import HarnessState, Hook, Rule, Tool
from harnessctl.bundle.text import format_number
from harnessctl.bundle.variation import Changes, Variation
from harnessctl.records.scenario import Needs


def unfit(needs: Needs, parent: HarnessState, variation: Variation) -> list[str]:
    """Why a sample with these needs must not be paired with the variant; empty when it may be."""
    return list(_unfit(needs, parent, variation.changes))


def _unfit(needs: Needs, parent: HarnessState, changes: Changes) -> Iterator[str]:
    skills = {skill.name for skill in parent.skills}
    for name in needs.skills:
        if name not in skills:
            yield f"needs the skill {name}, which the harness does not have"
        elif name in changes.masked_skills:
            yield f"needs the skill {name}, which is masked"
    masked = {f"{owner}#{rule}" for owner, rules in changes.masked_rules.items() for rule in rules}
    masked |= {f"{owner}#{item}" for owner, items in changes.masked_items.items() for item in items}
    masked |= {f"{s.name}#{rule.id}" for s in parent.skills if s.name in changes.masked_skills for rule in s.rules}
    for rule in needs.rules:
        if rule in masked:
            yield f"needs the rule {rule}, which is masked"
    for hook in parent.hooks:
        for rule in hook.enforces:
            if rule in masked and rule not in needs.rules and rule.partition("#")[0] in needs.skills:
                yield f"the hook {hook.id} enforces {rule}, which is masked"
    tools = {tool.name: tool for tool in parent.tools}
    for name in needs.tools:
        if name not in tools:
            yield f"needs the tool {name}, which the harness does not have"
            continue
        for hook in changes.added_hooks:
            if _shuts_out(hook, tools[name]):
                yield f"needs the tool {name}, which the added hook {hook.id} lets nobody call"
    for limit, least, what in (("reply_max_chars", needs.min_chars, "characters"), ("max_rounds", needs.min_rounds, "rounds")):  # fmt: skip
        known = parent.limits.get(limit)
        if known is not None and (value := changes.limits.get(limit, known.value)) < least:
            yield f"takes up {least} {what}, and {limit} is {format_number(value)}"


def _shuts_out(hook: Hook, tool: Tool) -> bool:
    """Whether the hook refuses every call of the tool, whatever comes before."""
    action = hook.then
    if hook.event != "pre_tool" or action is None or action.action not in ("block", "stop_loop", "fallback"):
        return False
    when = hook.when
    if set(when) - {"tools", "tags", "groups", "effects"}:
        return False
    return all(
        (
            not when.get("tools") or tool.name in when["tools"],
            not when.get("tags") or not set(tool.tags).isdisjoint(when["tags"]),
            not when.get("groups") or tool.group in when["groups"],
            not when.get("effects") or tool.effect in when["effects"],
        )
    )


def check(case: Case) -> list[Broken]:
    """What breaks law d whatever the sample: a variant that masks what may never be masked."""
    changes = case.changes
    if not (changes.masked_skills or changes.masked_rules or changes.masked_items):
        return []
    return [Broken("d", place, reason) for place, reason in _masks(case)]


def _masks(case: Case) -> Iterator[tuple[str, str]]:
    known, changes = case.known, case.changes
    for name in changes.masked_skills:
        if name in known.compared:
            yield f"skills/{name}", "is masked, and a hook, a template or a route compares with it"
    parent = known.parent
    if changes.masked_skills and parent.require_skill == "reply":
        left = {skill.name for skill in case.variant.skills}
        if not any(skill.kind == "reply" and skill.name in left for skill in parent.skills):
            yield "skills", "a reply skill is required, and all are masked"
    for owner, ids in changes.masked_rules.items():
        if (skill := known.skills.get(owner)) is not None and owner not in changes.masked_skills:
            yield from _rules(f"skills/{owner}/rules", skill.rules, set(ids))
    for owner, ids in changes.masked_items.items():
        if (block := known.blocks.get(owner)) is not None:
            yield from _rules(f"prompt/{owner}/items", block.items, set(ids))


def _rules(place: str, rules: list[Rule], masked: set[str]) -> Iterator[tuple[str, str]]:
    for rule in rules:
        if rule.id in masked:
            if rule.protected:
                yield f"{place}/{rule.id}", "is protected and masked"
        elif rule.requires is not None and rule.requires in masked:
            yield f"{place}/{rule.requires}", f"is masked, and #{rule.id}, which stays, requires it"
