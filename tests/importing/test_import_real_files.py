"""Real files from public sources: each is imported or refused, and what was written compiles together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from import_project import compiles

from harnessctl.importing import import_hooks, import_mcp, import_skills

IMPORTS = {"skills": import_skills, "mcp": import_mcp, "hooks": import_hooks}


@pytest.fixture
def counts(repository: Path) -> dict[str, tuple[int, int, int]]:
    """The table of docs/importing.md: kind to (imported, refused, passed over)."""
    text = (repository / "docs/importing.md").read_text()
    rows = re.findall(r"^\| (skills|hooks|mcp) \| (\d+) \| (\d+) \| (\d+) \|", text, re.MULTILINE)
    return {kind: (int(a), int(b), int(c)) for kind, a, b, c in rows}


def test_all_of_them(folders, shared_data: Path, counts) -> None:
    _, ours = folders({})
    for kind, run in IMPORTS.items():
        source = shared_data / kind
        report = run(source, ours)
        files = sorted(p.relative_to(source).as_posix() for p in source.rglob("*") if p.is_file())
        assert sorted(entry.source for entry in report.entries) == files
        assert (len(report.imported), len(report.refused), len(report.passed_over)) == counts[kind]
        assert all(entry.reason for entry in report.entries if entry.outcome in ("refused", "passed over"))
        assert compiles(ours) == []
        again = run(source, ours)
        assert {entry.outcome for entry in again.imported} == {"unchanged"}


def test_bodies_stay_byte_for_byte(folders, shared_data: Path) -> None:
    _, ours = folders({})
    for entry in import_skills(shared_data / "skills", ours).imported:
        if any(note.kind == "changed" and "mention" in note.message for note in entry.notes):
            continue
        theirs = (
            (shared_data / "skills" / entry.source).read_bytes().removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
        )
        body = theirs.split(b"\n---\n", 1)[1] if theirs.startswith(b"---\n") else theirs
        assert (ours / entry.files[-1]).read_bytes().split(b"\n---\n", 1)[1] == body
