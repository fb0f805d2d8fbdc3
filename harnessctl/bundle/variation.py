"""Variation: what was changed of a harness state to make a variant, and the variant made from it.

What always holds: `vary` is the only way in which a variant is made, and it depends on the parent and the changes alone,
so that a variant is rebuilt from its record byte for byte. Everything in it is in canonical names; new texts, skills,
tools, hooks and code are embedded.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.bundle.changes import Changes, HookChange, check_changes
from harnessctl.bundle.files import Bundle, make_bundle
from harnessctl.bundle.state import Block, HarnessState, Hook, Limit, Number, Part, Rule, Skill, Surface, Tool
from harnessctl.bundle.text import Text
from harnessctl.errors import BundleError

__all__ = ["Changes", "HookChange", "Variation", "rebuild", "variant_bundle", "vary"]

FORMAT = "harnessctl/variation.v1"


class Variation(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="format", tag=FORMAT):
    """The augmentation record: one line of JSON Lines.

    `parent` and `variant` are digests of states; `envelope` is `<name>-<version>` and `envelope_digest` its content's.
    The variant is number `number` of the stream of `seed`. `operators` maps each operator that changed something to the
    targets that it changed. `rewriter` says where new wordings came from; `fallbacks` counts texts for which it had none.
    """

    parent: str
    variant: str
    harness: str
    envelope: str
    envelope_digest: str
    seed: int
    number: int
    rewriter: str = "rules"
    operators: dict[str, list[str]] = {}
    fallbacks: int = 0
    changes: Changes = msgspec.field(default_factory=Changes)


def rebuild(parent: Bundle, variation: Variation) -> Bundle:
    """The variant that a record describes; BundleError when `parent` is another bundle or the result another variant."""
    if parent.digest != variation.parent:
        raise BundleError(
            f"the record is of a variant of {variation.parent[:12]}; got {parent.name} {parent.digest[:12]}",
            hint="give the bundle that was augmented",
        )
    bundle = variant_bundle(parent, vary(parent.state, variation.changes))
    if bundle.digest != variation.variant:
        raise BundleError(
            f"the rebuilt variant has the digest {bundle.digest[:12]}, the record says {variation.variant[:12]}",
            hint="the record was made by another version of harnessctl, or altered",
        )
    return bundle


def variant_bundle(parent: Bundle, state: HarnessState) -> Bundle:
    """`state`, a variant of `parent`, as a bundle of the same name and version with a digest of its own."""
    return make_bundle(state, name=parent.name, version=parent.version, inventory=parent.inventory, world=parent.world)


def vary(state: HarnessState, changes: Changes) -> HarnessState:
    """The variant of `state`. Parts that do not change are shared with it; nothing of `state` is altered.

    BundleError when a change names something that the state does not have, adds something that it has, or lists an order
    of other members than there are. That the result is fair to a model is for the laws of augmentation to say.
    """
    check_changes(state, changes)
    texts = _by_owner(changes.texts)
    skills = [_skill(s, changes, texts) for s in state.skills if s.name not in changes.masked_skills]
    tools = [_tool(t, changes, texts) for t in state.tools]
    blocks = [_block(b, changes, texts) for b in state.prompt.blocks]
    return msgspec.structs.replace(
        state,
        skills=_ordered([*skills, *changes.added_skills], changes.skill_order),
        tools=_ordered([*tools, *changes.added_tools], changes.tool_order),
        hooks=[_hook(h, changes, texts) for h in state.hooks] + changes.added_hooks,
        prompt=msgspec.structs.replace(
            state.prompt,
            blocks=_ordered([*blocks, *changes.added_blocks], changes.block_order, "id"),
            framing=changes.framing or state.prompt.framing,
        ),
        limits=_limits(state.limits, changes.limits) if changes.limits else state.limits,
        code=state.code | changes.code if changes.code else state.code,
        surface=_surface(state.surface, changes),
    )


def _surface(surface: Surface, changes: Changes) -> Surface:
    gone = changes.masked_skills
    return Surface(
        tools=surface.tools | changes.tools,
        skills={k: v for k, v in (surface.skills | changes.skills).items() if k not in gone},
        parameters=surface.parameters
        | {name: surface.parameters.get(name, {}) | renames for name, renames in changes.parameters.items()},
        parameter_order=surface.parameter_order | changes.parameter_order,
    )


def _limits(limits: dict[str, Limit], values: dict[str, Number]) -> dict[str, Limit]:
    return limits | {name: msgspec.structs.replace(limits[name], value=value) for name, value in values.items()}


_NOTHING: dict[str, Text] = {}


def _by_owner(texts: dict[str, Text]) -> dict[str, dict[str, Text]]:
    """Texts by the first two parts of their places: {"skills/item-qa": {"description": ...}}."""
    out: dict[str, dict[str, Text]] = {}
    for place, text in texts.items():
        kind, name, rest = place.split("/", 2)
        out.setdefault(f"{kind}/{name}", {})[rest] = text
    return out


def _skill(skill: Skill, changes: Changes, texts: dict[str, dict[str, Text]]) -> Skill:
    masked = changes.masked_rules.get(skill.name, ())
    order = changes.rule_order.get(skill.name)
    new = texts.get(f"skills/{skill.name}", _NOTHING)
    if not masked and order is None and not new:
        return skill
    place = {rule: number for number, rule in enumerate(order or ())}
    body: list[Part] = []
    for index, part in enumerate(skill.body):
        text = new.get(f"parts/{index}", part.text)
        rules = [rule for rule in part.rules if rule not in masked]
        rules = sorted(rules, key=lambda rule: place.get(rule, -1)) if order is not None else rules
        body.append(msgspec.structs.replace(part, text=text, rules=rules))
    return msgspec.structs.replace(
        skill,
        description=new.get("description", skill.description),
        body=body,
        rules=_rules(skill.rules, masked, new, "rules"),
    )


def _rules(rules: list[Rule], masked: Any, new: dict[str, Text], kind: str) -> list[Rule]:
    """The rules that are left, reworded; one whose `after` is gone takes over the edge of what is gone."""
    known = {rule.id: rule for rule in rules}
    out: list[Rule] = []
    for rule in rules:
        if rule.id in masked:
            continue
        after = rule.after
        while after is not None and after in masked:
            after = known[after].after
        text = new.get(f"{kind}/{rule.id}")
        if text is not None or after != rule.after:
            rule = msgspec.structs.replace(rule, text=rule.text if text is None else text, after=after)
        out.append(rule)
    return out


def _tool(tool: Tool, changes: Changes, texts: dict[str, dict[str, Text]]) -> Tool:
    new = texts.get(f"tools/{tool.name}")
    if new is None:
        return tool
    docs = {key.removeprefix("docs"): text for key, text in new.items() if key.startswith("docs")}
    return msgspec.structs.replace(
        tool, description=new.get("description", tool.description), docs=tool.docs | docs if docs else tool.docs
    )


def _block(block: Block, changes: Changes, texts: dict[str, dict[str, Text]]) -> Block:
    masked = changes.masked_items.get(block.id, ())
    order = changes.item_order.get(block.id)
    new = texts.get(f"prompt/{block.id}", _NOTHING)
    if not masked and order is None and not new:
        return block
    items = _rules(block.items, masked, new, "items")
    if order is not None:
        items = _ordered(items, order, "id")
    return msgspec.structs.replace(block, heading=new.get("heading", block.heading), items=items)


def _hook(hook: Hook, changes: Changes, texts: dict[str, dict[str, Text]]) -> Hook:
    change = changes.hooks.get(hook.id)
    text = texts.get(f"hooks/{hook.id}", {}).get("message")
    if change is None and text is None:
        return hook
    field = "otherwise" if hook.otherwise is not None else "then"
    action = getattr(hook, field)
    message = action.message
    if message is not None:
        fields: dict[str, Any] = {} if text is None else {"text": text}
        if change is not None and change.role is not None:
            fields["role"] = change.role
        if change is not None and change.wrap is not None:
            fields["wrap"] = change.wrap or None
        message = msgspec.structs.replace(message, **fields)
    retries = action.max_retries if change is None or change.max_retries is None else change.max_retries
    action = msgspec.structs.replace(action, message=message, max_retries=retries)
    return msgspec.structs.replace(hook, **{field: action})


def _ordered(members: list[Any], order: list[str], key: str = "name") -> list[Any]:
    """`members` as `order` lists them; BundleError when it lists others."""
    if not order:
        return members
    by_name = {getattr(member, key): member for member in members}
    if len(by_name) != len(members) or sorted(order) != sorted(by_name):
        raise BundleError(f"an order lists {', '.join(sorted(order))}; there are {', '.join(sorted(by_name))}")
    return [by_name[name] for name in order]
