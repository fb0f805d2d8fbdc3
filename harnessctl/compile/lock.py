"""harness.lock: the committed digests of every source and every bundle, and the tools that MCP servers offered.

What always holds: the file is the same for the same project on any machine; it changes only when a compile changes
what it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from harnessctl.errors import Fault, Faults
from harnessctl.manifests.locate import LOCK_NAME

FORMAT = "harnessctl/lock.v1"
SECTIONS = ("bundles", "discovered", "sources")


def read_lock(root: Path, faults: Faults) -> dict[str, Any] | None:
    """The lock of a project, or None when it has none; a fault when it cannot be read."""
    path = root / LOCK_NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        faults.add(Fault(LOCK_NAME, 0, 0, "lock-unreadable", f"the file cannot be read: {error.strerror}"))
        return None
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        line = data[: error.pos].count(b"\n") + 1
        faults.add(
            Fault(
                LOCK_NAME,
                line,
                0,
                "lock-unreadable",
                f"the file is not JSON: {error.msg}",
                allowed="what compile writes",
                hint="resolve the conflict by deleting the file and compiling again"
                if b"<<<<<<<" in data
                else "delete the file and compile again",
            )
        )
        return None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        faults.add(
            Fault(
                LOCK_NAME,
                1,
                0,
                "lock-unreadable",
                "the file is not a lock of this version",
                str(found),
                FORMAT,
                "delete the file and compile again",
            )
        )
        return None
    for section in SECTIONS:
        held = document.setdefault(section, {})
        bad = next((n for n, e in held.items() if not _FORMS[section](e)), None) if isinstance(held, dict) else ""
        if bad is not None:
            faults.add(
                Fault(
                    LOCK_NAME,
                    0,
                    0,
                    "lock-unreadable",
                    f"the section {section} is not of its form",
                    bad or type(held).__name__,
                    "what compile writes",
                    "delete the file and compile again",
                )
            )
            return None
    return document


def _is_bundle(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("version"), str) and isinstance(entry.get("digest"), str)


def _is_server(entry: Any) -> bool:
    tools = entry.get("tools") if isinstance(entry, dict) else None
    return isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)


_FORMS: dict[str, Callable[[Any], bool]] = {
    "sources": lambda entry: isinstance(entry, str),
    "bundles": _is_bundle,
    "discovered": _is_server,
}


def encode_lock(document: dict[str, Any]) -> bytes:
    """The bytes of the file: sorted, a line for each entry, so that changes read well in review."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n"


def make_lock(
    sources: dict[str, str], bundles: dict[str, dict[str, str]], discovered: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The lock of what was compiled: path to SHA-256, harness to {version, digest}, server to {spec, tools}."""
    return {"format": FORMAT, "sources": sources, "bundles": bundles, "discovered": discovered}


def changes(old: dict[str, Any] | None, new: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(what, before, after) for each entry that would change, in order; before or after is empty where there is none."""
    for section in SECTIONS:
        before: dict[str, Any] = (old or {}).get(section, {})
        after: dict[str, Any] = new[section]
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield (
                    f"{section[:-1] if section != 'discovered' else 'server'} {name}",
                    _short(before.get(name)),
                    _short(after.get(name)),
                )


def _short(entry: Any) -> str:
    if entry is None:
        return ""
    if isinstance(entry, str):
        return entry[:12]
    if isinstance(entry, dict) and "digest" in entry:
        return f"{entry.get('version')}+{str(entry['digest'])[:12]}"
    if isinstance(entry, dict) and "tools" in entry:
        return f"{len(entry['tools'])} tools"
    return str(entry)[:40]


def locked_faults(old: dict[str, Any] | None, new: dict[str, Any]) -> Iterator[Fault]:
    """A fault for everything that `--locked` keeps from changing."""
    if old is None:
        yield Fault(
            LOCK_NAME,
            0,
            0,
            "lock-missing",
            "the project is not locked",
            allowed=f"a committed {LOCK_NAME}",
            hint="run `harnessctl compile` and commit the file",
        )
        return
    for what, before, after in changes(old, new):
        yield Fault(
            LOCK_NAME,
            0,
            0,
            "lock-changed",
            f"{what} would change",
            after or "nothing",
            before or "nothing",
            "run `harnessctl compile` and commit harness.lock",
        )
