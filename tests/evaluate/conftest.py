"""The stall project, compiled once, and evaluations of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evaluate_jobs import Evaluate, folder_of, job_of
from evaluate_stall import write_stall

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.evaluation import evaluate
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.report import Report
from harnessctl.runs import RunFolder


@pytest.fixture(scope="session")
def stall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's root."""
    return write_stall(tmp_path_factory.mktemp("stall"))


@pytest.fixture(scope="session")
def stall_bundle(stall: Path) -> Bundle:
    return compiled(stall, None)


@pytest.fixture
def job(stall: Path, stall_bundle: Bundle) -> Callable[..., Job]:
    return lambda **keys: job_of(stall, stall_bundle, **keys)


@pytest.fixture
def evaluated(job: Callable[..., Job], tmp_path: Path) -> Evaluate:
    """Evaluates with some keys; the run's folder and its report."""

    def run(
        name: str = "run", *, folder: RunFolder | None = None, on_done: Any = None, **keys: Any
    ) -> tuple[Path, Report]:
        wanted = job(**keys)
        folder = folder or folder_of(wanted, tmp_path / name)
        with wanted.setting() as setting:
            return folder.path, evaluate(wanted, folder, setting, on_done=on_done)

    return run
