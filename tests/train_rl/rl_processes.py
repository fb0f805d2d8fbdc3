"""A training over made-up rollouts that tests run in processes of their own, to kill it or to have it work as two."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors.torch import save_file

from harnessctl.checkpoint.resume import ResumePoints
from harnessctl.train.config import PolicyConfig
from harnessctl.train.loop import Loop
from harnessctl.train.metrics import Metrics
from harnessctl.train.policy import load_policy
from harnessctl.train.rl.environment import Rollout
from harnessctl.train.rl.objective import RlObjective
from harnessctl.train.rl.prefix import Reader
from tests.train_rl.rl_project import Made, made_up, rl_config


def train_made(
    folder: Path, model: Path, *, kill_group: int | None = None, environment: dict[str, str] | None = None
) -> None:
    """Train in `folder`, going on from what is there; the weights at the end are written to weights.safetensors."""
    os.environ.update(environment or {})
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)

    def make(number: int, which: int) -> Rollout:
        if number == kill_group:
            os.kill(os.getpid(), signal.SIGKILL)
        return made_up(number, which)

    config = rl_config(groups=3, rollouts=4, loop={"steps": 4, "lr": 0.01, "save_every": 2})
    policy = load_policy(PolicyConfig(name="tiny", dtype="float32", device="cpu"), model)
    reader = Reader.open(policy.inner, lambda _: None)
    objective = RlObjective(policy, config, Made(make), reader, accelerator=accelerator)
    loop = Loop(policy.model, config.loop, points=ResumePoints(folder / "points"), accelerator=accelerator)
    loop.resume()
    is_first = accelerator.is_main_process
    with Metrics(folder if is_first else None, board=False) as metrics:
        loop.run(objective, metrics)
    if is_first:
        save_file(
            {name: p.detach().clone() for name, p in policy.model.named_parameters()}, folder / "weights.safetensors"
        )
    accelerator.end_training()
