"""Folders that hold more than files: pipes are never opened, what cannot be read is named."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from import_project import PROJECT, compiles

from harnessctl.errors import StorageError
from harnessctl.importing import import_hooks, import_mcp, import_skills

Write = Callable[[Mapping[str, str | bytes]], Path]
SKILL = "---\nname: brief\ndescription: Says it in a few words.\n---\nBe brief.\n"


@pytest.fixture
def source(project: Write) -> Path:
    root = project({**{f"p/{path}": text for path, text in PROJECT.items()}, "from/brief/SKILL.md": SKILL})
    return root / "from"


@pytest.mark.parametrize(
    ("name", "load"), [("SKILL.md", import_skills), ("hooks.json", import_hooks), ("tools.json", import_mcp)]
)
def test_a_pipe_is_refused_unread(source: Path, name: str, load: Callable[..., object]) -> None:
    (source / "odd").mkdir()
    os.mkfifo(source / "odd" / name)
    report = load(source, source.parent / "p")
    assert "it is a pipe, a socket or a device, which is not read" in report.render()
    assert compiles(source.parent / "p") == []


def test_a_pipe_beside_a_skill_stays_behind(source: Path) -> None:
    os.mkfifo(source / "brief" / "pipe")
    report = import_skills(source, source.parent / "p")
    assert "not carried over: pipe: a pipe, a socket or a device" in report.render()
    assert [entry.outcome for entry in report.entries if entry.name == "brief"] == ["imported"]


def test_a_folder_that_cannot_be_read_is_named(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refused(path: str) -> object:
        if Path(path).name == "brief":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(StorageError, match=r"cannot read .*brief: Permission denied"):
        import_skills(source, source.parent / "p")
