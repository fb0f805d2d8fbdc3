"""A small project to import into, and a folder of somebody else's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from import_project import PROJECT

Folders = tuple[Path, Path]


@pytest.fixture
def folders(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Folders]:
    """Writes the foreign files; returns (their folder, the project's root)."""

    def write(files: Mapping[str, str | bytes]) -> Folders:
        for base, found in (("theirs", files), ("ours", PROJECT)):
            for name, content in found.items():
                path = tmp_path / base / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        (tmp_path / "theirs").mkdir(exist_ok=True)
        return tmp_path / "theirs", tmp_path / "ours"

    return write
