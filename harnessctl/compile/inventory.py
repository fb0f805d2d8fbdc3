"""Inventory: what a harness is made of, as the paper's release inventory lists it [2.4, Tables 11 and 12].

Table 11 groups the tools by responsibility, Table 12 lists the Skills by kind with their versions; Hooks follow by
lifecycle point. Module names and versions are reconciled against the manifests before a promotion: `reconcile`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.bundle.state import Tool
from harnessctl.errors import Fault

#: Groups that the paper names come first, in its order; a project's own follow by name.
GROUPS = ("retrieval", "commerce", "flow-control", "marketing")
EVENTS = ("input", "pre_model", "post_model", "pre_tool", "post_tool", "stop", "end")
KINDS = ("reply", "strategy")
_SECTIONS = ("skills", "tools", "hooks")


class Module(msgspec.Struct, kw_only=True):
    """One tool, skill or hook. `of` is its group, kind or event; `source` says what carries a tool out."""

    name: str
    version: str
    of: str
    source: str = ""
    notes: list[str] = []


class Table(msgspec.Struct, kw_only=True):
    """A table to print."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


class Inventory(msgspec.Struct, kw_only=True):
    """Every module of one bundle, in the order in which it is listed."""

    harness: str
    version: str
    digest: str
    tools: list[Module]
    skills: list[Module]
    hooks: list[Module]

    def tables(self) -> list[Table]:
        """Tables 11 and 12, and the Hooks."""
        return [self.tool_table(), self.skill_table(), self.hook_table()]

    def tool_table(self) -> Table:
        """Table 11: tools by responsibility, with counts."""
        rows: list[tuple[str, ...]] = []
        for group, found in _grouped(self.tools):
            names = ", ".join(f"{m.name} {m.version}".strip() for m in found)
            rows.append((group, str(len(found)), names, ", ".join(_sources(found))))
        title = f"Table 11. Tools by responsibility ({len(self.tools)})"
        return Table(title=title, columns=("responsibility", "count", "tools", "carried out by"), rows=rows)

    def skill_table(self) -> Table:
        """Table 12: Skills by kind, with versions."""
        rows: list[tuple[str, ...]] = [(f"{m.of} skill", m.name, m.version) for m in self.skills]
        counts = ", ".join(f"{len(found)} {kind}" for kind, found in _grouped(self.skills))
        return Table(title=f"Table 12. Skills ({counts or 'none'})", columns=("kind", "skill", "version"), rows=rows)

    def hook_table(self) -> Table:
        """Hooks by lifecycle point."""
        rows: list[tuple[str, ...]] = [(m.of, m.name, m.version, "; ".join(m.notes)) for m in self.hooks]
        title = f"Hooks by lifecycle point ({len(self.hooks)})"
        return Table(title=title, columns=("point", "hook", "version", "does"), rows=rows)


def inventory(bundle: Bundle) -> Inventory:
    """The inventory of a bundle."""
    state = bundle.state
    versions = bundle.inventory
    tools = [
        Module(name=t.name, version=versions.get("tools", {}).get(t.name, ""), of=t.group, source=_carrier(t))
        for t in state.tools
    ]
    skills = [Module(name=s.name, version=versions.get("skills", {}).get(s.name, ""), of=s.kind) for s in state.skills]
    hooks = [
        Module(
            name=h.id, version=versions.get("hooks", {}).get(h.id, ""), of=h.event, notes=_does(msgspec.to_builtins(h))
        )
        for h in state.hooks
    ]
    return Inventory(
        harness=bundle.name,
        version=bundle.version,
        digest=bundle.digest,
        tools=sorted(tools, key=lambda m: (_rank(GROUPS, m.of), m.of)),
        skills=sorted(skills, key=lambda m: _rank(KINDS, m.of)),
        hooks=sorted(hooks, key=lambda m: _rank(EVENTS, m.of)),
    )


def reconcile(bundle: Bundle, root: Path) -> list[Fault]:
    """Where the bundle and the project's present manifests do not agree on a module or its version.

    Codes: `inventory-version` (another version now), `inventory-missing` (not in the manifests), `inventory-added` (not in
    the bundle), `inventory-stale` (the same version, another content). FaultsError when the project does not compile.
    """
    from harnessctl.compile.diff import diff_states
    from harnessctl.compile.revision import compiled

    now = compiled(root, bundle.name)
    touched = {"/".join(change.at.split("/")[:2]) for change in diff_states(bundle.state, now.state)}
    faults: list[Fault] = []
    for section in _SECTIONS:
        was, present = bundle.inventory.get(section, {}), now.inventory.get(section, {})
        for name in sorted(was.keys() | present.keys()):
            fault = _disagreement(section[:-1], name, was.get(name), present.get(name), f"{section}/{name}" in touched)
            if fault is not None:
                code, message, got, allowed, hint = fault
                path, line, col = _place(now if name in present else bundle, f"{section}/{name}")
                faults.append(Fault(path, line, col, code, message, got, allowed, hint))
    if bundle.version != now.version:
        path, line, col = _place(now, "harness")
        message = f"the harness `{bundle.name}` has another version in its manifest"
        faults.append(
            Fault(path, line, col, "inventory-version", message, now.version, bundle.version, "compile it again")
        )
    return sorted(faults)


def _disagreement(
    noun: str, name: str, was: str | None, present: str | None, touched: bool
) -> tuple[str, str, str, str, str] | None:
    """code, message, got, allowed and hint for one module; None when the two agree."""
    if present is None:
        return (
            "inventory-missing",
            f"the {noun} `{name}` of the bundle is not in the manifests",
            "nothing",
            was or "",
            "compile it again",
        )
    if was is None:
        return "inventory-added", f"the {noun} `{name}` is not in the bundle", present, "nothing", "compile it again"
    if was != present:
        return (
            "inventory-version",
            f"the {noun} `{name}` has another version in its manifest",
            present,
            was,
            "compile it again",
        )
    if touched:
        message = f"the {noun} `{name}` changed and kept its version"
        return "inventory-stale", message, present, "another version", "raise its version, and compile it again"
    return None


def _place(bundle: Bundle, at: str) -> tuple[str, int, int]:
    found: list[Any] = bundle.source_map.get(at, [])
    if len(found) == 3:
        return str(found[0]), int(found[1]), int(found[2])
    return f"manifests of {bundle.name}", 0, 0


def _grouped(modules: list[Module]) -> list[tuple[str, list[Module]]]:
    groups: dict[str, list[Module]] = {}
    for module in modules:
        groups.setdefault(module.of, []).append(module)
    return list(groups.items())


def _sources(modules: list[Module]) -> list[str]:
    return list(dict.fromkeys(m.source for m in modules if m.source))


def _carrier(tool: Tool) -> str:
    """What carries a call out: python, http, `mcp:server`, builtin; `final` for a tool that only ends the loop."""
    run = tool.run or tool.simulate
    if not run:
        return "final" if tool.final else ""
    kind = next(iter(run))
    return f"mcp:{run['mcp'].get('server', '')}" if kind == "mcp" else kind


def _does(hook: dict[str, Any]) -> list[str]:
    """What the hook does, in a few words: its check and its action."""
    if hook.get("observe"):
        return ["observes"]
    action = (hook.get("otherwise") or hook.get("then") or {}).get("action", "")
    check = hook.get("check")
    return [f"{next(iter(check))} else {action}"] if check else [f"always {action}"]


def _rank(order: tuple[str, ...], name: str) -> int:
    return order.index(name) if name in order else len(order)
