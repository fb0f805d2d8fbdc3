"""Emit: the bound parts of a harness put together, in the order in which a model sees them or they run.

The bytes are those of `bundle.files.encode_bundle`, made without taking the parts apart again: skills, which are most of
a bundle, are kept as canonical JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from harnessctl.bundle.files import FORMAT
from harnessctl.compile import load_skill
from harnessctl.compile.discover import plain
from harnessctl.compile.target import EncodedBundle, Target
from harnessctl.storage import canonical_json, digest_bytes


def bundle_of(target: Target, digests: Mapping[str, str], listed: Mapping[str, dict[str, Any]]) -> EncodedBundle:
    """The bundle of a harness without faults; `digests` maps the path of a source to its SHA-256, `listed` a server that
    lists its tools to what it listed."""
    plan = target.plan
    assert plan is not None
    places: dict[str, list[Any]] = {"harness": [plan.file.path, *plan.document.place("name")]}
    code: dict[str, str] = {}
    files: dict[str, str] = {}
    sources = {plan.file.path: digests[plan.file.path]}
    for kind, units in target.units.items():
        sources |= {unit.file.path: unit.digest for unit in units}
        for bound in target.bound[kind]:
            places |= bound.places
            code |= bound.code
            files |= bound.files
            sources |= bound.embedded
    places |= {f"limits/{name}": [plan.file.path, *plan.document.place("limits", name)] for name in plan.spec.limits}
    hooks = _hooks(target)
    state = _object(
        {
            "skills": b"[" + b",".join(_skills(target)) + b"]",
            "tools": _tools(target, places),
            "hooks": [hook for hook, _ in hooks],
            "prompt": target.bound["PromptPipeline"][0].state["prompt"],
            "limits": {name: msgspec.to_builtins(limit) for name, limit in target.limits.items()},
            **_given("servers", _servers(target, listed)),
            **_given("judges", target.judges),
            **_given("code", code),
            **_given("files", files),
            "surface": {},
            **target.reply,
        }
    )
    digest = digest_bytes(state)
    bundle = {
        "format": FORMAT,
        "name": plan.spec.name,
        "version": plan.spec.version,
        "digest": digest,
        "state": state,
        "inventory": _inventory(target, [version for _, version in hooks]),
        "sources": sources,
        "source_map": places,
        "world": plan.spec.world,
    }
    return EncodedBundle(plan.spec.name, plan.spec.version, digest, _object(bundle) + b"\n")


def _object(fields: dict[str, Any]) -> bytes:
    """The canonical JSON of an object some of whose values are canonical JSON already, as bytes. Keys are ASCII."""
    parts = (
        (key, value if isinstance(value, bytes) else canonical_json(value)) for key, value in sorted(fields.items())
    )
    return b"{" + b",".join(b'"%s":%s' % (key.encode(), value) for key, value in parts) + b"}"


def _servers(target: Target, listed: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The servers; one that was asked for its tools has what it said, which the runtime compares with what it says."""
    servers = {name: server for bound in target.bound["Tools"] for name, server in bound.state["servers"].items()}
    return {
        name: {**server, "tools": listed[name]["tools"]} if server.get("discover") and name in listed else server
        for name, server in servers.items()
    }


def _given(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """A field of the state, which leaves out what is empty."""
    return {name: value} if value else {}


def _skills(target: Target) -> list[bytes]:
    """The canonical JSON of each skill."""
    examples = {
        unit.file.name: bound.state.get("examples", [])
        for unit, bound in zip(target.units["Examples"], target.bound["Examples"], strict=True)
    }
    out = []
    for unit, bound in zip(target.units["Skill"], target.bound["Skill"], strict=True):
        text: str = bound.state["skill"]
        if examples.get(unit.file.name):
            skill = {**orjson.loads(text), "examples": examples[unit.file.name]}
            out.append(canonical_json(skill))
        else:
            out.append(text.encode())
    return out


def _tools(target: Target, places: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """load_skill first where the compiler adds it; then tools as included, those of a manifest's servers after its own."""
    out: list[dict[str, Any]] = []
    declared = [tool for bound in target.bound["Tools"] for tool in bound.state["tools"]]
    is_declared = any((tool.get("run") or {}).get("builtin") == load_skill.LOAD_SKILL for tool in declared)
    if target.units["Skill"] and not is_declared:
        out.append(load_skill.state_tool())
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
