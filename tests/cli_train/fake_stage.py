"""A stage that teaches a tiny model one sentence, in the place of the real ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from harnessctl.cli.main import main
from harnessctl.train.budget import Budget
from harnessctl.train.config import TrainConfig
from harnessctl.train.job import Job
from harnessctl.train.loop import Loop
from harnessctl.train.objective import StepData
from harnessctl.train.order import CONFIGS, PACKAGES
from harnessctl.train.policy import Policy

RECIPE = """\
# @package _global_
# harnessctl train sft model=tiny
model:
  name: tiny
  path: MODEL
  dtype: float32
  device: cpu
  threads: 1
  lora: null
loop:
  steps: 3
  lr: 0.01
  save_every: 2
  keep: 2
start: null
bundle: null
needs: {gpus: 0}
seed: 0
length: 16
break_at: null
debug: false
in_debug:
  loop.steps: 2
  length: 8
"""


class FakeConfig(TrainConfig, kw_only=True, forbid_unknown_fields=True):
    length: int = 16
    break_at: int | None = None


class Sentence:
    """Cross-entropy on one made-up row of ids."""

    def __init__(self, policy: Policy, length: int) -> None:
        self.policy, self.length = policy, length
        self.stop_at: int | None = None

    def data(self, step: int) -> StepData:
        if step == self.stop_at:
            raise KeyboardInterrupt
        ids = torch.randint(3, 200, (1, self.length), generator=torch.Generator().manual_seed(step % 2))
        if torch.distributed.is_initialized() and torch.distributed.get_rank():
            ids = ids[:, :1]  # nothing to predict: an empty micro-batch
        return StepData([ids], self.length - 1, {"reward/accuracy": 0.5, "discarded": 0.25, "cot/tool": 3.0})

    def loss(self, micro: torch.Tensor) -> tuple[torch.Tensor, dict[str, float]]:
        logits = self.policy.model(input_ids=micro, use_cache=False).logits[0, :-1]
        if not len(logits):
            return 0.0 * logits.sum(), {}
        return torch.nn.functional.cross_entropy(logits, micro[0, 1:], reduction="sum"), {}


class FakeStage:
    """`interrupt_at` has it interrupted before that step."""

    config = FakeConfig
    interrupt_at: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def budget(self, job: Job) -> Budget:
        return Budget(job.config.length, job.config.loop.steps, "one sentence a step")

    def run(self, job: Job) -> None:
        policy = job.policy
        objective = Sentence(policy, job.config.length)
        objective.stop_at = self.interrupt_at
        loop = Loop(policy.model, job.config.loop, points=job.points(), accelerator=job.accelerator)
        loop.resume()
        loop.run(objective, job.metrics)
        policy.save(job.checkpoint, job.lineage(data="0" * 64))


def enter(monkeypatch: pytest.MonkeyPatch, stage: str) -> FakeStage:
    """Put a fake stage in the place of a real one."""
    package = f"harnessctl.train.{PACKAGES[stage]}"
    made = FakeStage(stage)
    for name, value in (("stage", {"STAGE": made}), ("config", {CONFIGS[stage]: FakeConfig})):
        module = ModuleType(f"{package}.{name}")
        vars(module).update(value)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return made


def run_program(folder: Path, arguments: list[str], *, environment: dict[str, str]) -> None:
    """The program with the fake stage, in a process of its own."""
    os.environ.update(environment)
    os.chdir(folder)
    with pytest.MonkeyPatch.context() as patch:
        enter(patch, "sft")
        code = main(arguments)
    torch.distributed.destroy_process_group()
    sys.exit(code)
