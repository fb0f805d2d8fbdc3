"""Emit: the bound parts of a harness put together, in the order in which a model sees them or they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harnessctl.bundle import state
from harnessctl.bundle.files import Bundle, make_bundle
from harnessctl.compile.discover import plain
from harnessctl.compile.tools import LOAD_SKILL, LOAD_SKILL_PARAMETERS

if TYPE_CHECKING:
    from harnessctl.compile.passes import Target

LOAD_SKILL_DESCRIPTION = "Load a skill: the instructions for one kind of message. Load the one that fits before you reply."


def bundle_of(target: Target, digests: Mapping[str, str]) -> Bundle:
    """The bundle of a harness without faults; `digests` maps the path of a source to its SHA-256."""
    plan = target.plan
    assert plan is not None
    places: dict[str, list[Any]] = {"harness": [plan.file.path, *plan.document.place("name")]}
    code: dict[str, str] = {}
    files: dict[str, str] = {}
    sources = {plan.file.path: plan.file.path}
    for group in target.bound.values():
        for bound in group:
            places |= bound.places
            code |= bound.code
            files |= bound.files
    places |= {f"limits/{name}": [plan.file.path, *plan.document.place("limits", name)] for name in plan.spec.limits}
    hooks = _hooks(target)
    document: dict[str, Any] = {
        "skills": _skills(target),
        "tools": _tools(target, places),
        "hooks": [bound for bound, _ in hooks],
        "prompt": target.bound["PromptPipeline"][0].state["prompt"],
        "limits": {name: msgspec.to_builtins(limit) for name, limit in target.limits.items()},
        "servers": {k: v for bound in target.bound["Tools"] for k, v in bound.state["servers"].items()},
        "code": dict(sorted(code.items())),
        "files": dict(sorted(files.items())),
        **target.reply,
    }
    sources = {plan.file.path: digests[plan.file.path]}
    for kind, units in target.units.items():
        sources |= {unit.file.path: unit.digest for unit in units}
        for bound in target.bound.get(kind, []):
            sources |= {p: d for p, d in bound.depends.items() if d is not None and not p.startswith("/")}
    return make_bundle(
        msgspec.convert(document, state.HarnessState),
        name=plan.spec.name,
        version=plan.spec.version,
        inventory=_inventory(target, [version for _, version in hooks]),
        sources=dict(sorted(sources.items())),
        source_map=dict(sorted(places.items())),
        world=plan.spec.world,
    )


def _skills(target: Target) -> list[dict[str, Any]]:
    examples = {
        unit.file.name: bound.state.get("examples", [])
        for unit, bound in zip(target.units["Examples"], target.bound["Examples"], strict=True)
    }
    out = []
    for unit, bound in zip(target.units["Skill"], target.bound["Skill"], strict=True):
        skill = dict(bound.state["skill"])
        if examples.get(unit.file.name):
            skill["examples"] = examples[unit.file.name]
        out.append(skill)
    return out


def _tools(target: Target, places: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """load_skill first where the compiler adds it; then tools as included, those of a manifest's servers after its own."""
    out: list[dict[str, Any]] = []
    declared = [tool for bound in target.bound["Tools"] for tool in bound.state["tools"]]
    is_declared = any((tool.get("run") or {}).get("builtin") == LOAD_SKILL for tool in declared)
    if target.units["Skill"] and not is_declared:
        added = state.Tool(
            name=LOAD_SKILL,
            description=[LOAD_SKILL_DESCRIPTION],
            group="flow-control",
            parameters=LOAD_SKILL_PARAMETERS,
            run={"builtin": LOAD_SKILL},
        )
        out.append(plain(added))
    waiting = list(target.discovered)
    for unit, bound in zip(target.units["Tools"], target.bound["Tools"], strict=True):
        out.extend(bound.state["tools"])
        for tool, place in [offer for offer in waiting if offer[1][0] == unit.file.path]:
            out.append(plain(tool))
            places[f"tools/{tool.name}"] = place
    return out


def _hooks(target: Target) -> list[tuple[dict[str, Any], tuple[str, str]]]:
    """(hook, (id, version)) in the order in which they run: by `order`, then as included."""
    found = []
    for unit, bound in zip(target.units["Hooks"], target.bound["Hooks"], strict=True):
        for outline, hook in zip(unit.outline["hooks"], bound.state["hooks"], strict=True):
            found.append((outline["order"], len(found), hook, (outline["id"], outline["version"])))
    return [(hook, version) for _, _, hook, version in sorted(found, key=lambda entry: entry[:2])]


def _inventory(target: Target, hooks: list[tuple[str, str]]) -> dict[str, dict[str, str]]:
    assert target.plan is not None
    tools = {name: outline["version"] for name, outline in target.scope.tools.items()}
    return {
        "skills": {unit.file.name: unit.outline["version"] for unit in target.units["Skill"]},
        "tools": tools,
        "hooks": dict(hooks),
        "prompt": {target.plan.spec.prompt: ""},
    }
