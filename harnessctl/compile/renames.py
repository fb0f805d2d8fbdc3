"""Renames: which removed thing and which added thing are one thing under another name.

What always holds: a thing has at most one new name; names that both states have are never taken for renames; the
result depends on the states alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from harnessctl.bundle.state import Block, HarnessState, Hook, Rule, Tool
from harnessctl.bundle.text import Ref
from harnessctl.compile.shown import plain, show_text, skill_text

#: How alike (0 to 1, over words) two contents must be to be one thing renamed.
ALIKE = 0.6

_WORDS = re.compile(r"[^\W_\u2e80-\uffff]+|[^\w\s]|[\u2e80-\uffff]")

_CALL = re.compile(r"\b(tool|skill)(\(\s*)(['\"])([^'\"]+)\3(\s*\))")

T = TypeVar("T")


class Renames(msgspec.Struct, frozen=True):
    """Old name to new name, for each kind of thing. `rules` is by owner (`skills/x`, `prompt/blocks/y`) in new names."""

    skills: dict[str, str] = {}
    tools: dict[str, str] = {}
    hooks: dict[str, str] = {}
    blocks: dict[str, str] = {}
    rules: dict[str, dict[str, str]] = {}


def find_renames(old: HarnessState, new: HarnessState) -> Renames:
    """The renames from `old` to `new`: removed and added things whose contents are alike, the most alike first."""
    skills = _pair({s.name: s for s in old.skills}, {s.name: s for s in new.skills}, skill_text)
    tools = _pair({t.name: t for t in old.tools}, {t.name: t for t in new.tools}, _tool_text)
    hooks = _pair({h.id: h for h in old.hooks}, {h.id: h for h in new.hooks}, _hook_text)
    blocks = _pair({b.id: b for b in old.prompt.blocks}, {b.id: b for b in new.prompt.blocks}, _block_text)
    rules: dict[str, dict[str, str]] = {}
    owners = [(f"skills/{skills.get(s.name, s.name)}", s.rules) for s in old.skills]
    owners += [(f"prompt/blocks/{blocks.get(b.id, b.id)}", b.items) for b in old.prompt.blocks]
    present = {f"skills/{s.name}": s.rules for s in new.skills} | {
        f"prompt/blocks/{b.id}": b.items for b in new.prompt.blocks
    }
    for owner, before in owners:
        found = rename_rules(before, present.get(owner, []))
        if found:
            rules[owner] = found
    return Renames(skills, tools, hooks, blocks, rules)


def rename_rules(old: Sequence[Rule], new: Sequence[Rule]) -> dict[str, str]:
    """Renamed rules of one owner."""
    return _pair({r.id: r for r in old}, {r.id: r for r in new}, lambda rule: show_text(rule.text))


def _pair(old: Mapping[str, T], new: Mapping[str, T], content: Callable[[T], str]) -> dict[str, str]:
    gone = {name: _WORDS.findall(content(thing)) for name, thing in old.items() if name not in new}
    come = {name: _WORDS.findall(content(thing)) for name, thing in new.items() if name not in old}
    scores: list[tuple[float, str, str]] = []
    for a, words in gone.items():
        matcher = difflib.SequenceMatcher(None, autojunk=False)
        matcher.set_seq2(words)
        for b, others in come.items():
            matcher.set_seq1(others)
            if matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE and matcher.ratio() >= ALIKE:
                scores.append((-matcher.ratio(), a, b))
    out: dict[str, str] = {}
    for _, a, b in sorted(scores):
        if a not in out and b not in out.values():
            out[a] = b
    return out


def _tool_text(tool: Tool) -> str:
    shown = {k: v for k, v in plain(tool).items() if k in ("description", "parameters", "docs", "run", "result")}
    return msgspec.json.encode(shown).decode()


def _hook_text(hook: Hook) -> str:
    return msgspec.json.encode({k: v for k, v in plain(hook).items() if k != "id"}).decode()


def _block_text(block: Block) -> str:
    return msgspec.json.encode({k: v for k, v in plain(block).items() if k not in ("id", "after")}).decode()


def apply_renames(state: HarnessState, renames: Renames) -> HarnessState:
    """`state` under the new names, in every structured place that names a thing.

    Expressions, Python code and schemas are text of their author's and stay as they are.
    """
    by_kind = {"tool": renames.tools, "skill": renames.skills}

    def walk(value: Any, rules: Mapping[str, str]) -> Any:
        if isinstance(value, Ref):
            names = rules if value.kind == "rule" else by_kind.get(value.kind, {})
            return Ref(value.kind, names.get(value.name, value.name))
        if isinstance(value, msgspec.Struct):
            return type(value)(**{f: walk(getattr(value, f), rules) for f in value.__struct_fields__})
        if isinstance(value, list):
            return [walk(item, rules) for item in value]
        if isinstance(value, dict):
            return {key: walk(item, rules) for key, item in value.items()}
        return value

    tool = _namer(renames.tools)
    skill = _namer(renames.skills)
    block = _namer(renames.blocks)
    out: HarnessState = walk(state, {})
    for index, s in enumerate(out.skills):
        rules = renames.rules.get(f"skills/{skill(s.name)}", {})
        s = out.skills[index] = walk(s, rules)
        s.name = skill(s.name)
        s.allowed_tools = [tool(x) for x in s.allowed_tools]
        for part in s.body:
            part.rules = [rules.get(x, x) for x in part.rules]
        _rename_edges(s.rules, rules)
        for message in (m for example in s.examples for m in example):
            message.calls = [c | {"tool": tool(c["tool"])} if "tool" in c else c for c in message.calls]
    for t in out.tools:
        t.name = tool(t.name)
    for h in out.hooks:
        h.id = renames.hooks.get(h.id, h.id)
        h.when = _rename_lists(h.when, tool, skill)
        h.check = _rename_lists(h.check, tool, skill)
        h.enforces = [_enforced(x, renames) for x in h.enforces]
    for index, b in enumerate(out.prompt.blocks):
        rules = renames.rules.get(f"prompt/blocks/{block(b.id)}", {})
        b = out.prompt.blocks[index] = walk(b, rules)
        b.id = block(b.id)
        b.after = None if b.after is None else block(b.after)
        b.template = None if b.template is None else _rename_calls(b.template, renames)
        _rename_edges(b.items, rules)
    surface = out.surface
    surface.tools = {tool(k): v for k, v in surface.tools.items()}
    surface.skills = {skill(k): v for k, v in surface.skills.items()}
    surface.parameters = {tool(k): v for k, v in surface.parameters.items()}
    surface.parameter_order = {tool(k): v for k, v in surface.parameter_order.items()}
    return out


def _namer(names: Mapping[str, str]) -> Callable[[str], str]:
    return lambda name: names.get(name, name)


def _rename_edges(rules: list[Rule], names: Mapping[str, str]) -> None:
    for rule in rules:
        rule.id = names.get(rule.id, rule.id)
        rule.after = None if rule.after is None else names.get(rule.after, rule.after)
        rule.requires = None if rule.requires is None else names.get(rule.requires, rule.requires)


def _rename_lists(value: Any, tool: Callable[[str], str], skill: Callable[[str], str]) -> Any:
    """A hook's `when` or `check` with the lists of tools and the skill that it names renamed."""
    if isinstance(value, list):
        return [_rename_lists(item, tool, skill) for item in value]
    if not isinstance(value, dict):
        return value
    out: dict[str, Any] = {}
    for key, item in value.items():
        if key in ("tools", "order") and isinstance(item, list):
            out[key] = [tool(x) if isinstance(x, str) else x for x in item]
        elif key == "skill" and isinstance(item, str):
            out[key] = skill(item)
        elif key == "schema":
            out[key] = item
        else:
            out[key] = _rename_lists(item, tool, skill)
    return out


def _enforced(target: str, renames: Renames) -> str:
    owner, _, rule = target.partition("#")
    owner = renames.skills.get(owner, owner)
    return f"{owner}#{renames.rules.get(f'skills/{owner}', {}).get(rule, rule)}"


def _rename_calls(template: str, renames: Renames) -> str:
    by_function = {"tool": renames.tools, "skill": renames.skills}

    def renamed(match: re.Match[str]) -> str:
        function, opening, quote, name, closing = match.groups()
        return f"{function}{opening}{quote}{by_function[function].get(name, name)}{quote}{closing}"

    return _CALL.sub(renamed, template)
