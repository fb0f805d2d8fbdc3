"""Import of hooks: the hook files of Claude Code, Gemini CLI and Cursor into `manifests/hooks/<name>.yaml`.

What always holds: a hook that is written decides when and what it decided there; one whose event, matcher, type or
script has no counterpart here is not written, and the report says why.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harnessctl.importing.hook_events import Dialect
from harnessctl.importing.hook_file import HookFile
from harnessctl.importing.names import free, known_names, slug
from harnessctl.importing.placing import project_folder
from harnessctl.importing.report import Entry, ImportReport
from harnessctl.importing.sources import read_json, shown, walk

#: Parts of a path that say what the file is and not whose.
_GENERIC = frozenset(
    {"hooks", "settings", "settings-local", "claude", "gemini", "cursor", "plugin", "plugins", "hooks-cursor"}
)


def import_hooks(source: Path, project: Path, *, dry_run: bool = False, force: bool = False) -> ImportReport:
    """Import every hook file (JSON) in `source`, a file or a folder, into the project at `project`.

    UsageError when either is not there; StorageError when the disk refuses (what was placed before stays whole).
    `force` replaces manifests that exist with other content. See docs/importing.md.
    """
    root = project_folder(project)
    known = known_names(root)
    report = ImportReport(kind="hooks", source=str(source), dry_run=dry_run)
    stems: set[str] = set()
    for path in walk(source):
        entry = Entry(source=shown(path, source), outcome="imported")
        report.entries.append(entry)
        if path != source and not path.name.lower().endswith((".json", ".json.bak", ".jsonc")):
            entry.outcome, entry.reason = "passed over", "not JSON"
            continue
        found = read_json(path, entry)
        if found is None:
            continue
        if reason := _not_hooks(found.value):
            entry.refuse(reason)
            continue
        hooks = HookFile(path, _bound(path, source), found, known, entry)
        name = free(_stem(path, source, hooks.dialect), stems)
        stems.add(name)
        hooks.place(name, root, force=force, dry_run=dry_run)
    return report


def _not_hooks(value: Any) -> str:
    """Why a JSON document holds no hooks; empty when it does."""
    if not isinstance(value, dict):
        return "it is no object with a `hooks` key"
    if isinstance(value.get("hooks"), dict):
        return "" if value["hooks"] else "its `hooks` are empty"
    if "mcpServers" in value:
        return "it is a map of MCP servers, not hooks: see `harnessctl import mcp`"
    if "$schema" in value and ("$defs" in value or "definitions" in value or "properties" in value):
        return "it is a JSON Schema of hook files, not a hook file"
    if "hooks" in value:
        return f"its `hooks` are {type(value['hooks']).__name__}, not a mapping of events"
    keys = ", ".join(list(value)[:6]) or "none"
    return f"it has no `hooks` key, which is where agents look; its keys: {keys}"


def _bound(path: Path, source: Path) -> Path:
    """How far up scripts are looked for: the source folder, or two folders above a file that is given alone."""
    if path != source:
        return source
    return path.parent.parent.parent


def _stem(path: Path, source: Path, dialect: Dialect) -> str:
    """The manifest's name: the last part of the path that says whose hooks they are."""
    parts = (
        [*source.resolve().parts[-3:], *path.relative_to(source).parts] if path != source else path.resolve().parts[-4:]
    )
    stem = path.name.split(".")[0] or path.name
    for part in (stem, *reversed(parts[:-1])):
        name = slug(part)
        if name and name not in _GENERIC:
            break
    else:
        name = "imported"
    return f"{name}-cursor" if dialect == "cursor" and "cursor" not in name else name
