"""What the tests of this folder share stands in robust_jobs.py; a copy of the project is for those that write into it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from robust_jobs import ROOT


@pytest.fixture
def copied_project(tmp_path: Path) -> Path:
    """The shipped project, with no runs."""
    root = tmp_path / "project"
    for name in ("manifests", "skills", "recipes"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return root
