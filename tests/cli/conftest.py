from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harnessctl.cli.main import main


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def harnessctl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the program in this process: harnessctl("validate", cwd=folder)."""

    def run(*arguments: str, cwd: Path | None = None) -> Result:
        if cwd is not None:
            monkeypatch.chdir(cwd)
        capsys.readouterr()
        code = main(list(arguments))
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def shop(tmp_path: Path, harnessctl: Callable[..., Result]) -> Path:
    """A fresh project of the minimal template."""
    assert harnessctl("init", str(tmp_path / "shop")).code == 0
    return tmp_path / "shop"
