"""Stage: one kind of training. Each has a package harnessctl/train/<stage>/ whose module `stage` holds its `STAGE`."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from harnessctl.train.budget import Budget
from harnessctl.train.config import TrainConfig
from harnessctl.train.job import Job
from harnessctl.train.order import PACKAGES, config_of


class Stage(Protocol):
    """What the command asks of a stage. `name` is one of STAGES; `config` the type of its recipe."""

    name: str
    config: type[TrainConfig]

    def budget(self, job: Job) -> Budget:
        """What the job is going to spend; called before anything starts."""
        ...

    def run(self, job: Job) -> None:
        """Train, and write the checkpoint into `job.checkpoint`. Goes on from `job.points()` where those hold a state."""
        ...


def stage_named(name: str) -> Stage:
    """The stage of that name; UsageError says which there are."""
    config_of(name)
    stage: Stage = import_module(f"harnessctl.train.{PACKAGES[name]}.stage").STAGE
    return stage
