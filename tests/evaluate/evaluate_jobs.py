"""Evaluations of the tests: jobs and run folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harnessctl.bundle.files import Bundle
from harnessctl.evaluate.config import EvalConfig, FaultsConfig
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.report import Report
from harnessctl.policies import ModelConfig, SamplingConfig
from harnessctl.records.run import Run
from harnessctl.runs import RunFolder

MANY_FAULTS = FaultsConfig(timeout=0.1, malformed=0.1, denied=0.1, stale=0.0, persist=0.5)
#: Evaluates with some keys; gives the run's folder and its report.
Evaluate = Callable[..., tuple[Path, Report]]


def job_of(root: Path, bundle: Bundle, **keys: Any) -> Job:
    given: dict[str, Any] = {"suite": "live-qa", "n": 40, "faults": MANY_FAULTS}
    config = EvalConfig(model=ModelConfig(name="none"), sampling=SamplingConfig(), **(given | keys))
    return Job(root, bundle, config)


def folder_of(job: Job, path: Path) -> RunFolder:
    record = Run(job="eval", name=job.config.suite, started="", config="", policy=job.config.policy)
    return RunFolder.create(job.root, record, "", folder=path)
