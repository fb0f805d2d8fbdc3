"""Changes: what is other in a variant of a harness state, and whether a state has all that they are changes of.

What always holds: everything is in canonical names; new texts, skills, tools, hooks and code are embedded.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from harnessctl.bundle.state import Action, Block, Framing, HarnessState, Hook, Number, Skill, Tool
from harnessctl.bundle.text import Text
from harnessctl.errors import BundleError


class HookChange(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is other of a hook's action: null leaves it. `wrap` empty takes the tag off."""

    max_retries: int | None = None
    role: Literal["tool", "user", "system"] | None = None
    wrap: str | None = None


class Changes(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything that makes a variant of its parent.

    `tools`, `skills`, `parameters` are renames as in Surface: canonical to new. `masked_skills` are left out;
    `masked_rules` and `masked_items` map a skill, or a block, to the ids of what is left out of it.
    `texts` maps a place to its new wording: `skills/<name>/description`, `skills/<name>/rules/<id>`,
    `skills/<name>/parts/<index>`, `tools/<name>/description`, `tools/<name>/docs<pointer>`, `prompt/<block>/heading`,
    `prompt/<block>/items/<id>`, `hooks/<id>/message`.
    Orders list names in their new order: all of `skill_order`, `tool_order`, `block_order` (those added included, those
    masked left out), and `rule_order` (skill to rules), `item_order` (block to items), `parameter_order` (tool to
    top-level parameters). A rule moves within its own list only.
    `added_*` are members that the parent does not have, `code` their modules. Blocks come after those of the parent; no
    operator of augmentation adds one, since it would say something new: built sets do (`evaluate.building`).
    """

    tools: dict[str, str] = {}
    skills: dict[str, str] = {}
    parameters: dict[str, dict[str, str]] = {}
    masked_skills: list[str] = []
    masked_rules: dict[str, list[str]] = {}
    masked_items: dict[str, list[str]] = {}
    texts: dict[str, Text] = {}
    skill_order: list[str] = []
    tool_order: list[str] = []
    block_order: list[str] = []
    rule_order: dict[str, list[str]] = {}
    item_order: dict[str, list[str]] = {}
    parameter_order: dict[str, list[str]] = {}
    limits: dict[str, Number] = {}
    added_skills: list[Skill] = []
    added_tools: list[Tool] = []
    added_hooks: list[Hook] = []
    added_blocks: list[Block] = []
    hooks: dict[str, HookChange] = {}
    code: dict[str, str] = {}
    framing: Framing | None = None


def check_changes(state: HarnessState, changes: Changes) -> None:
    """BundleError when a change is of something that is not there, so that no change is lost in silence."""
    skills = {skill.name: skill for skill in state.skills}
    rules = {skill.name: {rule.id for rule in skill.rules} for skill in state.skills}
    tools = {tool.name: tool for tool in state.tools}
    items = {block.id: {item.id for item in block.items} for block in state.prompt.blocks}
    hooks = {hook.id: hook.otherwise or hook.then for hook in state.hooks}
    new_skills = {skill.name for skill in changes.added_skills}
    new_tools = {tool.name for tool in changes.added_tools}
    wrong = [
        name for name in (*changes.skills, *changes.masked_skills) if name not in skills and name not in new_skills
    ]
    wrong += [name for name in changes.tools if name not in tools and name not in new_tools]
    if changes.parameters:
        shown = {tool.name: tool.parameters.get("properties", {}) for tool in (*state.tools, *changes.added_tools)}
        for name, renames in changes.parameters.items():
            wrong += [f"{name}#{key}" for key in renames if key not in shown[name]] if name in shown else [name]
    wrong += [name for name in changes.limits if name not in state.limits]
    wrong += [name for name, change in changes.hooks.items() if not _takes(hooks.get(name), change)]
    wrong += [place for place in changes.texts if not _has_text(place, skills, rules, tools, items, hooks)]
    for known, kept, masked in (
        (rules, changes.rule_order, changes.masked_rules),
        (items, changes.item_order, changes.masked_items),
    ):
        for name, ids in (*kept.items(), *masked.items()):
            wrong += [f"{name}#{id}" for id in ids if id not in known[name]] if name in known else [name]
    if changes.framing is not None:
        inputs = state.prompt.inputs.get("properties", {})
        wrong += [name for name in changes.framing.reverse if name != "messages" and name not in inputs]
    if wrong:
        raise BundleError(f"changes of what the state does not have: {', '.join(wrong)}")
    for name, order in changes.rule_order.items():
        _check_order(f"rules of {name}", order, rules[name].difference(changes.masked_rules.get(name, ())))
    for name, order in changes.parameter_order.items():
        there = tools[name].parameters.get("properties", {}) if name in tools else ()
        _check_order(f"parameters of {name}", order, there)
    double = [name for name in new_skills if name in skills] + [name for name in new_tools if name in tools]
    double += [hook.id for hook in changes.added_hooks if hook.id in hooks]
    double += [block.id for block in changes.added_blocks if block.id in items]
    double += [name for name, source in changes.code.items() if state.code.get(name, source) != source]
    for added in (changes.added_skills, changes.added_tools):
        double += [
            member.name for number, member in enumerate(added) if member.name in [x.name for x in added[:number]]
        ]
    if double:
        raise BundleError(f"changes add what the state has already: {', '.join(double)}")


def _takes(action: Action | None, change: HookChange) -> bool:
    """Whether a hook's action has all that `change` is other of."""
    if action is None:
        return False
    has_message = action.message is not None or (change.role is None and change.wrap is None)
    return has_message and (change.max_retries is None or action.max_retries is not None)


def _has_text(
    place: str,
    skills: dict[str, Skill],
    rules: dict[str, set[str]],
    tools: dict[str, Tool],
    items: dict[str, set[str]],
    hooks: dict[str, Action | None],
) -> bool:
    """Whether the state has a text at `place`."""
    kind, _, rest = place.partition("/")
    name, _, field = rest.partition("/")
    what, _, member = field.partition("/")
    if kind == "skills" and name in skills:
        if what == "parts":
            return member in map(str, range(len(skills[name].body)))
        return field == "description" or (what == "rules" and member in rules[name])
    if kind == "tools" and name in tools:
        return field == "description" or (what == "docs" and field.removeprefix("docs") in tools[name].docs)
    if kind == "prompt" and name in items:
        return field == "heading" or (what == "items" and member in items[name])
    action = hooks.get(name) if kind == "hooks" else None
    return field == "message" and action is not None and action.message is not None


def _check_order(what: str, order: list[str], there: Collection[str]) -> None:
    if len(order) != len(there) or set(order) != set(there):
        listed, known = ", ".join(order), ", ".join(sorted(there))
        raise BundleError(f"an order of the {what} lists {listed}; there are {known}")
