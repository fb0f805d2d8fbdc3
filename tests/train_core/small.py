"""A model of three layers, an objective over made-up rows, and a training of them that tests run in processes of their
own, to kill it or to have it work as two."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors.torch import save_file
from torch import nn
from torch.distributed.tensor import DTensor

from harnessctl.checkpoint.resume import ResumePoints
from harnessctl.train.config import LoopConfig
from harnessctl.train.engine import sharding_accelerator
from harnessctl.train.loop import Loop
from harnessctl.train.metrics import Metrics
from harnessctl.train.objective import StepData

WIDTH = 6


class Small(nn.Module):
    """Two layers, one of which may rest, and a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, 8)
        self.norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, 1)
        self.rare = nn.Linear(WIDTH, 1)
        self.frozen = nn.Linear(8, 8).requires_grad_(False)

    def forward(self, rows: torch.Tensor, *, rare: bool = False) -> torch.Tensor:
        held = self.last(self.frozen(self.norm(torch.tanh(self.first(rows)))))
        return held + self.rare(rows) if rare else held


def make_small(seed: int = 0) -> Small:
    torch.manual_seed(seed)
    return Small()


class Rows:
    """Squared error over 8 rows a step, in `micro` micro-batches a process; a row of zeros counts for nothing."""

    def __init__(self, model: Any, *, micro: int = 1, share: tuple[int, int] = (0, 1), rare_from: int = 0) -> None:
        self.model, self.micro, self.share, self.rare_from = model, micro, share, rare_from
        self.bad_step: int | None = None
        self.empty_steps: Sequence[int] = ()
        self.kill_step: int | None = None
        #: Only the later half of the rows goes through the layer that may rest: with two processes, in one alone.
        self.rare_late = False

    def data(self, step: int) -> StepData:
        if step == self.kill_step:
            os.kill(os.getpid(), signal.SIGKILL)
        noise = torch.rand(())  # of the loop's own stream
        made = torch.Generator().manual_seed(step)
        rows = torch.randn(8, WIDTH, generator=made)
        rank, processes = self.share
        mine = rows.chunk(processes)[rank] + 0.01 * noise
        if step == self.bad_step:
            mine = mine * float("nan")
        weight = 0.0 if step in self.empty_steps else 8.0
        parts = mine.chunk(self.micro)
        late = [rank * len(mine) + number * len(parts[0]) >= 4 for number in range(len(parts))]
        return StepData(
            [(step, part, is_late or not self.rare_late) for part, is_late in zip(parts, late, strict=True)],
            weight,
            {"tokens": 80.0},
        )

    def loss(self, micro: tuple[int, torch.Tensor, bool]) -> tuple[torch.Tensor, dict[str, float]]:
        step, rows, may = micro
        errors = self.model(rows, rare=may and step >= self.rare_from) - rows.sum(-1, keepdim=True)
        shown = {"error": float(errors.detach().abs().sum())}
        return errors.pow(2).sum(), shown if self.share[0] == 0 else {**shown, "second": 1.0}


def config(**given: Any) -> LoopConfig:
    return LoopConfig(**{"steps": 6, "lr": 0.02, "warmup": 2, "weight_decay": 0.1, "save_every": 2, **given})


def weights_of(model: Any) -> dict[str, torch.Tensor]:
    def whole(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor

    return {name: whole(value).detach().clone() for name, value in model.state_dict().items()}


def train_small(folder: Path, *, kill_step: int | None = None, environment: dict[str, str] | None = None) -> None:
    """Train in `folder`, going on from what is there; the weights at the end are written to weights.safetensors."""
    os.environ.update(environment or {})
    torch.set_num_threads(1)
    is_sharded = "SHARDED" in os.environ
    accelerator = sharding_accelerator(is_cpu=True, wrap="no_wrap") if is_sharded else Accelerator(cpu=True)
    rank, processes = accelerator.process_index, accelerator.num_processes
    loop = Loop(make_small(), config(), points=ResumePoints(folder / "points"), accelerator=accelerator, seed=3)
    rows = Rows(loop.model, share=(rank, processes), rare_from=3, micro=2)
    rows.kill_step = kill_step
    rows.rare_late = "RARE_EVERYWHERE" not in os.environ
    assert any(isinstance(moved, DTensor) for moved in loop.model.parameters()) is is_sharded
    loop.resume()
    with Metrics(folder if rank == 0 else None, board=False) as metrics:
        loop.run(rows, metrics)
    weights = weights_of(loop.model)
    if rank == 0:
        save_file(weights, folder / "weights.safetensors")
    accelerator.end_training()
