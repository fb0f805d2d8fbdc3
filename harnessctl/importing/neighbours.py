"""Neighbours: what the project's own texts say of the names that an import has brought.

What always holds: nothing of them is changed; a bare mention of a new name, which the compiler will not take from now
on, is a note with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harnessctl.errors import Faults
from harnessctl.importing.mentions import mend
from harnessctl.importing.report import Entry, ImportReport
from harnessctl.manifests.load import load_yaml
from harnessctl.manifests.locate import find_sources
from harnessctl.storage import read_bytes


def note_bare_mentions(root: Path, added: Mapping[str, Sequence[str]], report: ImportReport) -> None:
    """Note on each imported entry where older texts mention its names bare. `added` maps an entry's name to its names."""
    owner: dict[str, Entry] = {}
    own: set[str] = set()
    for entry in report.imported:
        own.update(entry.files)
        if entry.outcome == "imported":
            owner.update({name: entry for name in added.get(entry.name, ()) if "_" in name or "-" in name})
    if not owner:
        return
    for path, line, text in _texts(root, own):
        mended = mend(text, owner.keys())
        found = [(at, written.strip("`")) for at, written in mended.done] + [(s.line, s.name) for s in mended.stuck]
        for at, name in found:
            if name in owner:
                owner[name].note(
                    "warning",
                    0,
                    f"{path}:{line + at - 1} mentions `{name}` bare, which does not compile any more: put it into a code span",
                )


def _texts(root: Path, own: set[str]) -> Iterator[tuple[str, int, str]]:
    """(path, first line, text) of skills and of tools' descriptions that the import did not write."""
    faults = Faults()
    for source in find_sources(root, faults).sources:
        if source.path in own or source.kind not in ("Skill", "Tools"):
            continue
        data = read_bytes(root / source.path)
        if source.kind == "Skill":
            yield source.path, 1, data.decode("utf-8", "replace")
            continue
        document = load_yaml(source.path, data, faults)
        tools = document.get("tools") if document is not None else None
        for n, tool in enumerate(tools if isinstance(tools, list) else []):
            if document is not None and isinstance(tool, dict) and isinstance(tool.get("description"), str):
                yield source.path, document.place("tools", n, "description")[0], tool["description"]
