"""The stall project with a judge, compiled once; runs of it to judge."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluate"))
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from evaluate_jobs import folder_of, job_of
from evaluate_stall import write_stall
from judge_project import NO_FAULTS, write_judge

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.evaluation import evaluate
from harnessctl.runs import RunFolder


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(scope="session")
def judged_stall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's root."""
    return write_judge(write_stall(tmp_path_factory.mktemp("judged-stall")))


@pytest.fixture(scope="session")
def host(judged_stall: Path) -> Bundle:
    return compiled(judged_stall, None)


@pytest.fixture(scope="session")
def judge(judged_stall: Path) -> Bundle:
    return compiled(judged_stall, "stall-judge")


@pytest.fixture
def root(judged_stall: Path, tmp_path: Path) -> Path:
    """A copy of the project: ballots and runs are kept in it."""
    target = tmp_path / "project"
    shutil.copytree(judged_stall, target, ignore=shutil.ignore_patterns("build", "runs"))
    return target


@pytest.fixture
def answered(host: Bundle, root: Path, tmp_path: Path) -> Callable[..., Path]:
    """The folder of a run of the oracle, or of a flaw of it."""

    def run(name: str = "run", **keys: Any) -> Path:
        wanted = job_of(root, host, **({"n": 6, "faults": NO_FAULTS} | keys))
        folder: RunFolder = folder_of(wanted, tmp_path / name)
        with wanted.setting() as setting:
            evaluate(wanted, folder, setting)
        return folder.path

    return run
