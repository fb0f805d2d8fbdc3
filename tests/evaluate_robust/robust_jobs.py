"""Jobs of the tests: the shipped hosts, whose sets are built once a session."""

from __future__ import annotations

import atexit
import functools
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.building.making import Built
from harnessctl.evaluate.config import EvalConfig, FaultsConfig
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.sets import set_named
from harnessctl.evaluate.setting import Setting
from harnessctl.evaluate.workers import outcomes
from harnessctl.policies import ModelConfig, SamplingConfig
from harnessctl.records.score import Score

#: Items of a set that tests look at.
N = 24
ROOT = Path(__file__).resolve().parents[2]
NO_FAULTS = FaultsConfig(timeout=0.0, malformed=0.0, denied=0.0, stale=0.0)


@functools.cache
def host(harness: str) -> Bundle:
    """A shipped harness."""
    return compiled(ROOT, harness)


def job_of(suite: str, harness: str, n: int, **keys: Any) -> Job:
    """A job of the oracle's."""
    given: dict[str, Any] = {"faults": NO_FAULTS} | keys
    config = EvalConfig(suite=suite, model=ModelConfig(name=""), sampling=SamplingConfig(), n=n, **given)
    return Job(ROOT, host(harness), config)


@functools.cache
def _opened(harness: str) -> Setting:
    """A setting of a shipped host: reading its families takes longer than what is asked of it here."""
    setting = job_of("live-qa", harness, 1).setting()
    atexit.register(setting.close)
    return setting


def opened(job: Job) -> Setting:
    """The setting of a job of a shipped host, good until the next one of that host is asked for."""
    setting = _opened(job.bundle.name)
    setting.config, setting.built = job.config, {}
    return setting


@functools.cache
def built(suite: str, harness: str, n: int = N, seed: int = 0) -> Built:
    """The first `n` items of a set."""
    setting = opened(job_of(suite, harness, n, seed=seed))
    set_named(suite).items(setting)
    return setting.built[suite]


def scores(suite: str, harness: str, n: int, **keys: Any) -> list[Score]:
    """The scores of a run that is kept nowhere; the set is built once."""
    job = job_of(suite, harness, n, **keys)
    items = built(suite, harness, n, job.config.seed)
    setting = opened(job)
    setting.built[suite] = items
    found = outcomes(job, range(n), setting)
    return [msgspec.json.decode(outcome.lines["scores"], type=Score) for outcome in found]
