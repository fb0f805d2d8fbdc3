"""Harnesses: which sources make one agent, its routes and the form of its replies."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harnessctl.compile.scope import Scope, listed
from harnessctl.compile.sources import header
from harnessctl.compile.unit import Bound
from harnessctl.errors import Faults
from harnessctl.manifests.events import names_at
from harnessctl.manifests.load import Document
from harnessctl.manifests.locate import SourceFile
from harnessctl.manifests.specs.harness import Harness
from harnessctl.manifests.violations import did_you_mean

#: What a state leaves out (see bundle.state).
_STATE_DEFAULTS: dict[str, Any] = {
    "session_keep": [],
    "require_skill": "none",
    "reply_format": "text",
    "reply_schema": None,
    "route_default": "public",
    "private_when": None,
    "silent_when": None,
    "scores": {},
}


@dataclass(slots=True)
class Plan:
    """One harness as read, and what it includes: names of skills, stems of tools and hooks, in order."""

    file: SourceFile
    document: Document
    spec: Harness
    skills: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)


def read(file: SourceFile, data: bytes, faults: Faults) -> Document | None:
    """The manifest in the bytes, when it is a harness."""
    return header(file, data, "Harness", Harness, (), faults)


def outline(file: SourceFile, parsed: Document) -> dict[str, Any]:
    """Its name, and the names of its limits, which texts may refer to even where the rest is wrong."""
    limits = parsed.get("limits")
    name = parsed.get("name")
    return {
        "name": name if isinstance(name, str) else file.name,
        "limits": list(limits) if isinstance(limits, dict) else [],
        "place": [file.path, *parsed.place("name")],
    }


def bind(file: SourceFile, parsed: Document, scope: Scope, faults: Faults) -> Bound:
    """Nothing: a harness is what others are bound for."""
    return Bound()


def plan(file: SourceFile, document: Document) -> Plan | None:
    """The harness in a document. Where a field does not fit its schema, which reading has reported, the harness is
    taken without it, so that everything else is still checked; None when `include` or `prompt` are such fields.
    """
    given: dict[str, Any] = document.value
    least: dict[str, Any] = {
        "apiVersion": "harnessctl/v1",
        "kind": "Harness",
        "name": "x",
        "version": "0.0.0",
        "include": {},
        "prompt": "",
    }
    usable = {key: value for key, value in given.items() if _fits({**least, key: value})}
    if "include" not in usable or "prompt" not in usable:
        return None
    name = {"name": re.sub(r"[^a-z0-9]+", "-", file.name.lower()).strip("-") or "x"}
    return Plan(file, document, msgspec.convert({**least, **name, **usable}, Harness))


def _fits(value: dict[str, Any]) -> bool:
    try:
        msgspec.convert(value, Harness)
    except msgspec.ValidationError:
        return False
    return True


def include(plan: Plan, files: Iterable[SourceFile], faults: Faults) -> None:
    """Resolve the patterns of `include` against the project's files."""
    by_kind: dict[str, list[str]] = {"Skill": [], "Tools": [], "Hooks": []}
    for file in files:
        if file.kind in by_kind:
            by_kind[file.kind].append(file.name)
    for kind, into, patterns in (
        ("Skill", "skills", plan.spec.include.skills),
        ("Tools", "tools", plan.spec.include.tools),
        ("Hooks", "hooks", plan.spec.include.hooks),
    ):
        found: dict[str, None] = {}
        for n, pattern in enumerate(patterns):
            matches = sorted(name for name in by_kind[kind] if fnmatch.fnmatchcase(name, pattern))
            if not matches:
                faults.add(
                    plan.document.fault(
                        "include-unknown",
                        f"no {into[:-1]} of this name",
                        "include",
                        into,
                        n,
                        got=pattern,
                        allowed=listed(by_kind[kind]),
                        hint=did_you_mean(pattern, by_kind[kind]),
                    )
                )
            found.update(dict.fromkeys(matches))
        setattr(plan, into, list(found))


def reply(plan: Plan, scope: Scope, faults: Faults) -> tuple[dict[str, Any], set[str]]:
    """The fields of the state that the harness itself decides, and the limits that its expressions use."""
    document, spec = plan.document, plan.spec
    used: set[str] = set()
    for name in ("private_when", "silent_when"):
        if getattr(spec.reply.route, name) is not None:
            from harnessctl.compile.templates import check_expression  # jinja2 only where it is needed

            used |= check_expression(document.passage("reply", "route", name), scope, names_at("stop"), faults)
    schema = None
    if spec.reply.schema is not None:
        from harnessctl.compile import json_schemas

        rewritten = json_schemas.rewrite(document, faults, "reply", "schema")
        schema = rewritten.schema if rewritten is not None else None
    if spec.reply.format == "json" and spec.reply.schema is None:
        faults.add(
            document.fault(
                "reply-schema",
                "a reply in JSON has a schema",
                "reply",
                "format",
                got="json",
                allowed="format: text, or a schema",
            )
        )
    if spec.reply.format == "text" and spec.reply.schema is not None:
        faults.add(
            document.fault(
                "reply-schema", "a reply in text has no schema", "reply", "schema", key=True, allowed="format: json"
            )
        )
    _check_scores(plan, schema, faults)
    if spec.require_skill == "reply" and not any(s["kind"] == "reply" for s in scope.skills.values()):
        faults.add(
            document.fault(
                "require-skill",
                "a reply skill is required and the harness includes none",
                "require_skill",
                got="reply",
                allowed="none, or an include.skills with a reply skill",
            )
        )
    scores = spec.scores
    fields = {
        "session_keep": spec.session.keep,
        "require_skill": spec.require_skill,
        "reply_format": spec.reply.format,
        "reply_schema": schema,
        "route_default": spec.reply.route.default,
        "private_when": spec.reply.route.private_when,
        "silent_when": spec.reply.route.silent_when,
        "scores": {
            k: v for k in ("accuracy", "effectiveness") if scores is not None and (v := getattr(scores, k)) is not None
        },
    }
    return {name: value for name, value in fields.items() if value != _STATE_DEFAULTS[name]}, used


def _check_scores(plan: Plan, schema: dict[str, Any] | None, faults: Faults) -> None:
    document, scores = plan.document, plan.spec.scores
    if scores is None:
        return
    if plan.spec.reply.format != "json":
        faults.add(
            document.fault(
                "scores-form",
                "scores are parts of a reply in JSON",
                "scores",
                key=True,
                allowed="reply: {format: json, schema: ...}",
            )
        )
        return
    for name in ("accuracy", "effectiveness"):
        pointer = getattr(scores, name)
        if pointer is None:
            continue
        node: Any = schema
        for part in pointer.split("/")[1:]:
            node = node.get("properties", {}).get(part) if isinstance(node, dict) else None
        if not pointer.startswith("/") or node is None:
            known = ["/" + key for key in (schema or {}).get("properties", {})]
            faults.add(
                document.fault(
                    "scores-form",
                    "the score is no part of the reply's schema",
                    "scores",
                    name,
                    got=pointer,
                    allowed=listed(known),
                )
            )
