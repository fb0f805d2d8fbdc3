"""A stage in a process of its own, which can be killed at a step, or be one of two."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from harnessctl.compile.revision import compiled
from harnessctl.train.engine import open_accelerator
from harnessctl.train.job import Job
from harnessctl.train.metrics import Metrics
from harnessctl.train.opd.stage import STAGE as OPD
from harnessctl.train.order import HARNESSED
from harnessctl.train.sft.stage import STAGE as SFT
from harnessctl.train.stage import Stage
from tests.train_core.conftest import Processes

STAGES: dict[str, Stage] = {stage.name: stage for stage in (SFT, OPD)}


def train(
    folder: Path,
    root: Path,
    start: Path,
    stage: str,
    config: Any,
    *,
    kill_step: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run `stage` in `folder`; at the end of step `kill_step` the process gets a signal that it cannot see."""
    os.environ.update(environment or {})
    torch.set_num_threads(1)

    def show(step: int, values: Mapping[str, float]) -> None:
        if step == kill_step:
            os.kill(os.getpid(), signal.SIGKILL)

    found = STAGES[stage]
    bundle = compiled(root, None) if stage in HARNESSED else None
    is_first = os.environ.get("RANK", "0") == "0"
    accelerator = open_accelerator(config)
    assert accelerator.is_fsdp2 is (config.sharding == "fsdp2")
    with Metrics(folder if is_first else None, show=show, board=False) as metrics:
        found.run(
            Job(
                root,
                folder,
                config,
                bundle,
                {},
                start,
                metrics,
                lambda _: None,
                accelerator,
                stage=stage,
                recipe={"of": "a test"},
            )
        )


def ready(environment: pytest.MonkeyPatch) -> Processes:
    """Processes that begin with the stages imported."""
    made = Processes(environment)
    made._context.set_forkserver_preload([__name__])
    return made
