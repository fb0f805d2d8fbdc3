"""Diff: what changed between two harness states, in the terms of the harness.

What always holds: the diff of a bundle with itself is empty; two states of different digest differ somewhere; a name
that was changed and its references are one change; the order of the result depends on the two bundles alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.bundle.state import Block, Framing, HarnessState, Hook, Rule, Skill, Tool
from harnessctl.compile.change import Change, Kind, escape, json_changes, owner, render_changes, same
from harnessctl.compile.renames import Renames, apply_renames, find_renames
from harnessctl.compile.shown import TEXT_FIELDS, outline, plain, plain_pair, show_pair, show_text
from harnessctl.compile.tokens import CountTokens, estimate_tokens, prompt_tokens, skill_tokens

__all__ = ["Change", "Kind", "diff_bundles", "diff_states", "render_changes"]

Noun = Literal["skill", "rule", "tool", "hook", "block", "limit", "server", "code", "file"]

_KIND: dict[tuple[str, str], Kind] = {
    (noun, verb): kind for kind in get_args(Kind) for noun, _, verb in [kind.partition(".")]
}

_UNWRITTEN = re.compile(r"^r-[0-9a-f]{8}(-\d+)?$")

#: Parts of the state that have no list of named things; compared by field.
_HARNESS_FIELDS = (
    "session_keep",
    "require_skill",
    "reply_format",
    "reply_schema",
    "route_default",
    "private_when",
    "silent_when",
    "scores",
    "judges",
)


def diff_bundles(old: Bundle, new: Bundle, *, count: CountTokens = estimate_tokens) -> list[Change]:
    """Every difference from `old` to `new`: the state's first, then what the digest does not cover.

    `count` counts the tokens of a text; the default estimates by a rule that `harnessctl.compile.tokens` states.
    """
    renames = find_renames(old.state, new.state)
    changes = list(_state_changes(old.state, new.state, renames))
    touched = {_thing(change.at) for change in changes}
    changes += _token_changes(old.state, new.state, renames, count)
    changes += _inventory_changes(old, new, renames, touched)
    for field in ("name", "version", "world"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            changes.append(Change("bundle.changed", field, before, after))
    return _by_owner(changes)


def diff_states(old: HarnessState, new: HarnessState) -> list[Change]:
    """Every difference between two states, without token counts."""
    return _by_owner(list(_state_changes(old, new, find_renames(old, new))))


def _by_owner(changes: list[Change]) -> list[Change]:
    """Changes of one thing together, things in the order in which they first occur."""
    rank: dict[str, int] = {}
    for change in changes:
        rank.setdefault(owner(change.at), len(rank))
    return sorted(changes, key=lambda change: rank[owner(change.at)])


def _state_changes(before: HarnessState, new: HarnessState, renames: Renames) -> Iterator[Change]:
    old = apply_renames(before, renames)
    yield from _prompt(old, new, renames)
    yield from _things(
        "skill", "skills", {s.name: s for s in old.skills}, {s.name: s for s in new.skills}, renames.skills
    )
    for a, b in _both(old.skills, new.skills):
        yield from _skill(a, b, renames.rules.get(f"skills/{b.name}", {}))
    yield from _things("tool", "tools", {t.name: t for t in old.tools}, {t.name: t for t in new.tools}, renames.tools)
    for a, b in _both(old.tools, new.tools):
        yield from _tool(a, b)
    yield from _things("hook", "hooks", {h.id: h for h in old.hooks}, {h.id: h for h in new.hooks}, renames.hooks)
    for a, b in _both(old.hooks, new.hooks):
        yield from _fields("hook.changed", f"hooks/{b.id}", a, b, skip=("id",))
    yield from _maps("limit", "limits", old.limits, new.limits)
    for field in _HARNESS_FIELDS:
        for at, x, y in json_changes(getattr(old, field), getattr(new, field), field):
            yield Change("harness.changed", at, x, y)
    yield from _maps("server", "servers", old.servers, new.servers)
    yield from _maps("code", "code", old.code, new.code)
    yield from _maps("file", "files", old.files, new.files)
    for field in ("tools", "skills", "parameters", "parameter_order"):
        for at, x, y in json_changes(getattr(old.surface, field), getattr(new.surface, field), f"surface/{field}"):
            yield Change("surface.changed", at, x, y)


def _things(
    noun: Noun, where: str, old: Mapping[str, Any], new: Mapping[str, Any], renamed: Mapping[str, str]
) -> Iterator[Change]:
    """Removed, added, renamed and moved members of a list; `old` is under its new names already."""
    for name in old:
        if name not in new:
            yield Change(_KIND[noun, "removed"], f"{where}/{name}", before=_summary(old[name]))
    for name in new:
        if name not in old:
            yield Change(_KIND[noun, "added"], f"{where}/{name}", after=_summary(new[name]))
    for was, name in sorted(renamed.items(), key=lambda pair: pair[1]):
        # An id that was never written follows the rule's text: the rewording says it all.
        written = not (_UNWRITTEN.match(was) and _UNWRITTEN.match(name))
        if name in old and name in new and written:
            yield Change(_KIND[noun, "renamed"], f"{where}/{name}", was, name)
    for name, i, j in moved(list(old), list(new)):
        yield Change(_KIND[noun, "moved"], f"{where}/{name}", i, j)


def moved(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int]]:
    """(name, old place, new place), 1-based, of the fewest names whose moving makes the two orders one."""
    place = {name: index for index, name in enumerate(old)}
    common = [name for name in new if name in place]
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for index, name in enumerate(common):
        at = bisect_left(tails, place[name])
        tails[at : at + 1] = [place[name]]
        ends[at : at + 1] = [index]
        back.append(ends[at - 1] if at else -1)
    kept: set[int] = set()
    index = ends[-1] if ends else -1
    while index >= 0:
        kept.add(index)
        index = back[index]
    at_new = {name: index for index, name in enumerate(new)}
    return [(name, place[name] + 1, at_new[name] + 1) for i, name in enumerate(common) if i not in kept]


def _both(old: Sequence[Any], new: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Pairs of one name, in the new order."""
    key = "id" if new and isinstance(new[0], (Hook, Block, Rule)) else "name"
    found = {getattr(x, key): x for x in old}
    for thing in new:
        name = getattr(thing, key)
        if name in found:
            yield found[name], thing


def _skill(old: Skill, new: Skill, renamed: Mapping[str, str]) -> Iterator[Change]:
    at = f"skills/{new.name}"
    count = 0
    for change in _skill_parts(old, new, at, renamed):
        count += 1
        yield change
    if not count:  # what no model sees: the order of the list of rules, how a text is cut into parts
        for path, x, y in json_changes(msgspec.to_builtins(old), msgspec.to_builtins(new), at):
            yield Change("skill.changed", path, x, y)


def _skill_parts(old: Skill, new: Skill, at: str, renamed: Mapping[str, str]) -> Iterator[Change]:
    if old.description != new.description:
        yield Change("skill.description", f"{at}/description", *show_pair(old.description, new.description))
    before, after = outline(old.body), outline(new.body)
    if before == after and [p.text for p in old.body] != [p.text for p in new.body]:
        before, after = outline(old.body, explicit=True), outline(new.body, explicit=True)
    if before != after:
        yield Change("skill.body", f"{at}/body", before, after)
    yield from _rules(old.rules, new.rules, f"{at}/rules", renamed, _shown_order(old), _shown_order(new))
    yield from _other_list(old, new, f"{at}/rules")
    yield from _fields("skill.changed", at, old, new, skip=("name", "description", "body", "rules"))


def _shown_order(skill: Skill) -> list[str]:
    shown = [rule for part in skill.body for rule in part.rules]
    return shown + [rule.id for rule in skill.rules if rule.id not in shown]


def _other_list(old: Skill, new: Skill, at: str) -> Iterator[Change]:
    """Rules that keep their order and stand in another list of the body."""
    lists, lists_new = ([p.rules for p in skill.body if p.rules] for skill in (old, new))
    if len(lists) != len(lists_new):
        return
    was = {rule: index for index, rules in enumerate(lists, 1) for rule in rules}
    jumped = {name for name, _, _ in moved(_shown_order(old), _shown_order(new))}
    for index, rules in enumerate(lists_new, 1):
        for rule in rules:
            if was.get(rule, index) != index and rule not in jumped:
                yield Change("rule.moved", f"{at}/{rule}", f"list {was[rule]}", f"list {index}")


def _rules(
    old: Sequence[Rule],
    new: Sequence[Rule],
    at: str,
    renamed: Mapping[str, str],
    order: list[str],
    order_new: list[str],
) -> Iterator[Change]:
    a, b = {r.id: r for r in old}, {r.id: r for r in new}
    yield from _things("rule", at, {k: a[k] for k in order if k in a}, {k: b[k] for k in order_new if k in b}, renamed)
    for x, y in _both(old, new):
        if x.text != y.text:
            yield Change("rule.reworded", f"{at}/{y.id}/text", *show_pair(x.text, y.text))
        yield from _fields("rule.changed", f"{at}/{y.id}", x, y, skip=("id", "text"))


def _tool(old: Tool, new: Tool) -> Iterator[Change]:
    at = f"tools/{new.name}"
    if old.description != new.description:
        yield Change("tool.description", f"{at}/description", *show_pair(old.description, new.description))
    for pointer in sorted(old.docs.keys() | new.docs.keys()):
        x, y = old.docs.get(pointer), new.docs.get(pointer)
        if x != y:
            shown = show_pair(x, y) if x is not None and y is not None else (x and show_text(x), y and show_text(y))
            yield Change("tool.description", f"{at}/docs{pointer}", *shown)
    for path, x, y in json_changes(old.parameters, new.parameters, f"{at}/parameters"):
        yield Change("tool.parameters", path, x, y)
    yield from _fields("tool.changed", at, old, new, skip=("name", "description", "docs", "parameters"))


def _prompt(old: HarnessState, new: HarnessState, renames: Renames) -> Iterator[Change]:
    for at, x, y in json_changes(old.prompt.inputs, new.prompt.inputs, "prompt/inputs"):
        yield Change("prompt.inputs", at, x, y)
    yield from _framing(old.prompt.framing, new.prompt.framing)
    a, b = {x.id: x for x in old.prompt.blocks}, {x.id: x for x in new.prompt.blocks}
    yield from _things("block", "prompt/blocks", a, b, renames.blocks)
    for x, y in _both(old.prompt.blocks, new.prompt.blocks):
        at = f"prompt/blocks/{y.id}"
        yield from _fields("block.changed", at, x, y, skip=("id", "items"))
        orders = [r.id for r in x.items], [r.id for r in y.items]
        yield from _rules(x.items, y.items, f"{at}/items", renames.rules.get(at, {}), *orders)


def _framing(old: Framing | None, new: Framing | None) -> Iterator[Change]:
    if old is not None and new is not None:
        yield from _fields("prompt.framing", "prompt/framing", old, new, skip=())
    elif old is not new:
        yield Change("prompt.framing", "prompt/framing", old and plain(old), new and plain(new))


def _fields(kind: Kind, at: str, old: Any, new: Any, *, skip: Sequence[str]) -> Iterator[Change]:
    """The fields that differ, down to the smallest part."""
    for field in msgspec.structs.fields(new):
        x, y = getattr(old, field.name), getattr(new, field.name)
        if field.name in skip or (x == y and same(msgspec.to_builtins(x), msgspec.to_builtins(y))):
            continue
        if field.name in TEXT_FIELDS and isinstance(x, list) and isinstance(y, list):
            yield Change(kind, f"{at}/{field.name}", *show_pair(x, y))
            continue
        for path, before, after in json_changes(*plain_pair(x, y), f"{at}/{field.name}"):
            yield Change(kind, path, before, after)


def _maps(noun: Noun, where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Members of a map: removed, added, changed. Limits, servers, code and files have no order of their own."""
    for name in sorted(old.keys() | new.keys()):
        at = f"{where}/{name}"
        if name not in new:
            yield Change(_KIND[noun, "removed"], at, before=_summary(old[name]))
        elif name not in old:
            yield Change(_KIND[noun, "added"], at, after=_summary(new[name]))
        elif noun == "limit":
            yield from _fields("limit.changed", at, old[name], new[name], skip=())
        else:
            for path, x, y in json_changes(old[name], new[name], at):
                yield Change(_KIND[noun, "changed"], path, x, y)


def _summary(thing: Any) -> Any:
    """What is said of a thing that came or went."""
    if isinstance(thing, Rule):
        return show_text(thing.text)
    if isinstance(thing, (Skill, Tool)):
        return show_text(thing.description)
    if isinstance(thing, Hook):
        return f"at {thing.event}"
    if isinstance(thing, Block):
        return thing.template if thing.template is not None else "\n".join(show_text(r.text) for r in thing.items)
    if isinstance(thing, str):
        return f"{thing.count(chr(10)) + 1} lines"
    return plain(thing)


def _token_changes(old: HarnessState, new: HarnessState, renames: Renames, count: CountTokens) -> Iterator[Change]:
    kind: Kind = "tokens.estimated" if count is estimate_tokens else "tokens.counted"
    a, b = prompt_tokens(old, count), prompt_tokens(new, count)
    if a != b:
        yield Change(kind, "prompt/tokens", a, b)
    was = {renames.skills.get(name, name): n for name, n in skill_tokens(old, count).items()}
    for name, n in skill_tokens(new, count).items():
        if name in was and was[name] != n:
            yield Change(kind, f"skills/{name}/tokens", was[name], n)


def _inventory_changes(old: Bundle, new: Bundle, renames: Renames, touched: set[str]) -> Iterator[Change]:
    """Versions of things that both have. `version.only`: nothing else about the thing changed."""
    names = {"skills": renames.skills, "tools": renames.tools, "hooks": renames.hooks}
    for group in sorted(old.inventory.keys() & new.inventory.keys()):
        was = {names.get(group, {}).get(name, name): v for name, v in old.inventory[group].items()}
        for name in sorted(was.keys() & new.inventory[group].keys()):
            if was[name] != new.inventory[group][name]:
                kind: Kind = "version.changed" if f"{group}/{name}" in touched else "version.only"
                yield Change(kind, f"inventory/{group}/{escape(name)}", was[name], new.inventory[group][name])


def _thing(at: str) -> str:
    return "/".join(at.split("/")[:2])
