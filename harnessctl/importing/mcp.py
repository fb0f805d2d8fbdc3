"""Import of MCP captures: what servers list, and maps of servers, into `manifests/tools/<name>.yaml`.

What always holds: each tool that is written calls a server that its manifest, or another of the project, names; no
secret is written; files that hold one tool each and lie in one folder make one manifest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harnessctl.errors import Faults
from harnessctl.importing.captures import Capture, read_capture
from harnessctl.importing.mcp_tools import ToolReader, Unusable, tool_name
from harnessctl.importing.names import MAX_NAME, KnownNames, free, known_names, slug
from harnessctl.importing.neighbours import note_bare_mentions
from harnessctl.importing.placing import place, project_folder
from harnessctl.importing.report import Entry, ImportReport
from harnessctl.importing.servers import server_spec, unknown_server, unread_fields
from harnessctl.importing.sources import JsonSource, read_json, shown, walk
from harnessctl.importing.yaml_text import to_yaml
from harnessctl.manifests.load import load_text
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs.tools import Tools

_ENDINGS = (".json", ".jsonc", ".snap", ".mcp")
_GENERIC = frozenset(
    {"tools", "tools-list", "mcp", "mcp-servers", "toolsnaps", "mcp-interview", "snapshots", "pkg", "list"}
)
_NAMES = (
    "name",
    "server",
    "server_info",
    "serverInfo",
    "url",
    "transport",
    "type",
    "parameters",
    "tools",
    "initialize_result",
)


@dataclass(slots=True)
class _Source:
    """One file of a manifest on its way in."""

    entry: Entry
    found: JsonSource
    capture: Capture


@dataclass(slots=True)
class _Manifest:
    """One manifest on its way in, from one file or from several that hold a tool each."""

    name: str
    sources: list[_Source] = field(default_factory=list)


def import_mcp(source: Path, project: Path, *, dry_run: bool = False, force: bool = False) -> ImportReport:
    """Import every capture (JSON) in `source`, a file or a folder, into the project at `project`.

    UsageError when either is not there; StorageError when the disk refuses (what was placed before stays whole).
    `force` replaces manifests that exist with other content. See docs/importing.md.
    """
    root = project_folder(project)
    known = known_names(root)
    report = ImportReport(kind="mcp", source=str(source), dry_run=dry_run)
    manifests = _manifests(source, report)
    names = known.marked() | {name for manifest in manifests for name in _marked(manifest)}
    for manifest in manifests:
        _write(manifest, known, names, root, force=force, dry_run=dry_run)
    added = {
        e.name: [n for n, path in known.tools.items() if path == f"manifests/tools/{e.name}.yaml"]
        for e in report.imported
    }
    note_bare_mentions(root, added, report)
    return report


def _manifests(source: Path, report: ImportReport) -> list[_Manifest]:
    out: list[_Manifest] = []
    folders: dict[Path, _Manifest] = {}
    stems: set[str] = set()
    for path in walk(source):
        entry = Entry(source=shown(path, source), outcome="imported")
        report.entries.append(entry)
        if path != source and not path.name.lower().endswith(_ENDINGS):
            entry.outcome, entry.reason = "passed over", "not JSON"
            continue
        found = read_json(path, entry)
        if found is None:
            continue
        capture = read_capture(found.value)
        if isinstance(capture, str):
            entry.refuse(capture)
            continue
        manifest = folders.get(path.parent) if capture.single else None
        if manifest is None:
            name = free(_stem(path, source, capture), stems)
            stems.add(name)
            manifest = _Manifest(name)
            out.append(manifest)
            if capture.single:
                folders[path.parent] = manifest
        entry.name = manifest.name
        manifest.sources.append(_Source(entry, found, capture))
    return out


def _stem(path: Path, source: Path, capture: Capture) -> str:
    """The manifest's name: what the file says of itself, its server, or the nearest folder that says whose tools they are."""
    below = path.relative_to(source).parts if path != source else (path.name,)
    folders = [*source.resolve().parts[-3:-1], *([source.resolve().name] if path != source else []), *below[:-1]]
    stem = path.name.removesuffix(path.suffix) or path.name
    for part in ([] if capture.single else [stem, capture.server]) + folders[::-1]:
        name = slug(part)
        if name and name not in _GENERIC:
            return name
    return slug(stem) or "imported"


def _marked(manifest: _Manifest) -> set[str]:
    """The names of the manifest's tools that may not stand bare in a text."""
    out: set[str] = set()
    for raw in (raw for source in manifest.sources for raw in source.capture.tools):
        try:
            name = tool_name(raw)
        except Unusable:
            continue
        if "_" in name or "-" in name:
            out.add(name)
    return out


def _write(manifest: _Manifest, known: KnownNames, names: set[str], root: Path, *, force: bool, dry_run: bool) -> None:
    target = f"manifests/tools/{manifest.name}.yaml"
    servers: dict[str, Any] = {}
    tools: list[dict[str, Any]] = []
    for source in manifest.sources:
        if source.capture.servers_at:
            _servers(source, known, target, servers)
        else:
            _tools(source, manifest, known, names, target, servers, tools)
    live = [source.entry for source in manifest.sources if source.entry.outcome != "refused"]
    if not live:
        return
    document: dict[str, Any] = {"apiVersion": "harnessctl/v1", "kind": "Tools"}
    document |= ({"mcpServers": servers} if servers else {}) | ({"tools": tools} if tools else {})
    text, reason = _written(document, target)
    if reason:
        for entry in live:
            entry.refuse(reason)
        return
    place(root, {target: text.encode()}, live[0], force=force, dry_run=dry_run)
    for entry in live[1:]:
        entry.outcome, entry.reason, entry.files = live[0].outcome, live[0].reason, list(live[0].files)
    if live[0].outcome != "refused":
        known.servers.update(dict.fromkeys(servers, target))


def _written(document: dict[str, Any], target: str) -> tuple[str, str]:
    """The manifest's text, and why it cannot be written (empty when it can)."""
    try:
        text = to_yaml(document)
    except ValueError as error:
        return "", f"it cannot be written as YAML: {error}"
    faults = Faults()
    loaded = load_text(target, text, faults)
    if loaded is not None:
        convert(loaded, "Tools", Tools, faults)
    first = faults.errors[0].render().partition("\n")[0] if faults.errors else ""
    return text, f"what would be written does not compile: {first}" if first else ""


def _servers(source: _Source, known: KnownNames, target: str, servers: dict[str, Any]) -> None:
    at = source.capture.servers_at
    for name, given in source.capture.servers.items():
        line = source.found.line(at, name)
        elsewhere = known.servers.get(name)
        if elsewhere is not None and elsewhere != target:
            source.entry.note("not carried over", line, f"the server `{name}`: {elsewhere} has one of this name")
        elif (spec := server_spec(name, given, source.entry, line)) is not None:
            servers[name] = spec
    unread_fields(source.capture.servers, source.entry)
    other = [key for key in source.found.value if key != at and not key.startswith("$")]
    if other:
        source.entry.note("not carried over", source.found.line(other[0]), f"what is not servers: {', '.join(other)}")
    if not servers:
        notes = [note.message for note in source.entry.notes if note.message.startswith("the server")]
        source.entry.refuse(f"none of its servers can be carried over: {'; '.join(notes[:3]) or 'it names none'}")
        return
    source.entry.note("warning", 0, "servers are named, not asked: `discover: true` on one takes its tools in")


def _tools(
    source: _Source,
    manifest: _Manifest,
    known: KnownNames,
    names: set[str],
    target: str,
    servers: dict[str, Any],
    tools: list[dict[str, Any]],
) -> None:
    entry, capture = source.entry, source.capture
    server = slug(capture.server) or manifest.name
    renamed = _renamed(capture, known, target, manifest.name)
    reader = ToolReader(entry, names, renamed, server=server, group=manifest.name)
    reasons: list[str] = []
    found: list[dict[str, Any]] = []
    for index, raw in enumerate(capture.tools):
        line = source.found.line(*(() if capture.single else (*capture.at, index)))
        label = raw.get("name") if isinstance(raw, dict) and isinstance(raw.get("name"), str) else f"number {index + 1}"
        try:
            tool = reader.read(raw, line)
            if any(other["name"] == tool["name"] for other in [*tools, *found]):
                raise Unusable("an earlier tool of the manifest has its name")
        except Unusable as reason:
            reasons.append(f"the tool {label}: {reason}")
            entry.note("not carried over", line, reasons[-1])
            continue
        if tool["name"] in renamed.values():
            old = next(name for name, new in renamed.items() if new == tool["name"])
            entry.note(
                "changed",
                line,
                f"the tool `{old}` is called `{tool['name']}` here: {known.tools[old]} has one of its name",
            )
        found.append(tool)
    if not found:
        entry.refuse(
            f"none of its {len(capture.tools)} tools can be carried over: {'; '.join(dict.fromkeys(reasons[:3]))}"
        )
        return
    reader.summary()
    value = source.found.value
    other_keys = (
        [key for key in value if key not in _NAMES and not key.startswith("$")]
        if isinstance(value, dict) and not capture.single
        else []
    )
    if other_keys:
        entry.note("not carried over", 0, f"what is not tools: {', '.join(other_keys)}")
    _reach(source, server, known, target, servers)
    tools += found
    known.tools.update({tool["name"]: target for tool in found})


def _renamed(capture: Capture, known: KnownNames, target: str, manifest: str) -> dict[str, str]:
    """Names that other tools of the project have, each with the manifest's name before it."""
    out: dict[str, str] = {}
    for raw in capture.tools:
        try:
            name = tool_name(raw)
        except Unusable:
            continue
        if known.tools.get(name, target) != target:
            out[name] = f"{manifest.replace('-', '_')}_{name}"[:MAX_NAME]
    return out


def _reach(source: _Source, server: str, known: KnownNames, target: str, servers: dict[str, Any]) -> None:
    """See that the server is named: here, in another manifest, or by a command that the environment gives."""
    elsewhere = known.servers.get(server)
    if server in servers:
        return
    if elsewhere is not None and elsewhere != target:
        source.entry.note(
            "warning", 0, f"the server `{server}` is the one of {elsewhere}: a harness includes both files"
        )
        return
    spec = server_spec(server, source.capture.reached, source.entry, 0) if source.capture.reached else None
    servers[server] = spec or unknown_server(server, source.entry)
