"""Loop: steps of an objective with accumulation, clipping, schedule, metrics and points to resume from.

What always holds: the loss of a step is one sum divided by one weight, so that four micro-batches equal one of four
times the size and two processes equal one; a step whose loss or gradient is no number stops the run before the weights
are touched; what is resumed goes on with the very weights, moments and step at which it was saved, and with the same
random numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from harnessctl.checkpoint.resume import ResumePoints
from harnessctl.errors import TrainingError
from harnessctl.train.config import LoopConfig
from harnessctl.train.held import put_back, taken
from harnessctl.train.metrics import Metrics
from harnessctl.train.objective import Objective, StepData
from harnessctl.train.optimizer import make_optimizer, scale_at
from harnessctl.train.together import sum_gradients, summed


class Loop:
    """One training. `model` is what the objective computes with; only its parameters that require gradients move.

    Several processes hold a replica each, whose gradients are added up after the last micro-batch: an objective may call
    the model, or parts of it, as it likes. Where accelerate is set up for FSDP2 the weights are sharded in place, and an
    objective must go through the whole model.
    """

    def __init__(
        self,
        model: nn.Module,
        config: LoopConfig,
        *,
        points: ResumePoints,
        accelerator: Accelerator | None = None,
        seed: int = 0,
    ) -> None:
        self.config = config
        self.accelerator = accelerator or Accelerator(cpu=next(model.parameters()).device.type == "cpu")
        self.step = 0
        self._kept = 0
        self._points = points
        self._seed = seed
        self._is_sharded = self.accelerator.is_fsdp2
        self.model: Any = model if self._is_sharded else model.to(self.accelerator.device)
        self._optimizer: Any = make_optimizer(self.model, config)
        if self._is_sharded:
            self.model, self._optimizer = self.accelerator.prepare(self.model, self._optimizer)

    def resume(self) -> int:
        """Go on from the newest point, if there is one; returns how many steps are done. CheckpointError when the point
        is of another model."""
        point = self._points.newest()
        if point is not None:
            put_back(self.model, self._inner_optimizer, point.tensors())
            self.step = self._kept = point.step
        return self.step

    def save(self) -> None:
        """Keep the state after `step` steps. StorageError when the disk is full: the points from before stay."""
        tensors = taken(self.model, self._inner_optimizer)
        if self.accelerator.is_main_process:
            self._points.save(self.step, tensors, {})
        self._kept = self.step
        self.accelerator.wait_for_everyone()

    def run(
        self,
        objective: Objective,
        metrics: Metrics,
        *,
        on_step: Callable[[int], None] | None = None,
        goes_on_at: Callable[[int], bool] = lambda step: True,
    ) -> None:
        """Take the steps that are left. `on_step` is called with the number of steps done, before a point is saved.
        `goes_on_at` says at which steps the objective can be resumed (`save_every` must be such a one).

        TrainingError when a loss or a gradient is no number: the newest point is the last good one. An interrupt keeps a
        point of the last whole step, where one process trains alone and the objective can go on from there.
        """
        metrics.rewind(self.step)
        while self.step < self.config.steps:
            is_whole = True
            try:
                began = time.perf_counter()
                # Another draw for each step, and the same one when the step is taken again.
                torch.manual_seed((self._seed << 24) + self.step)
                data = objective.data(self.step)
                made = time.perf_counter()
                found = self._gradients(objective, data)
                is_whole = False
                if data.weight:
                    self._optimizer.step()
                    self._optimizer.zero_grad()
                self.step += 1
                is_whole = True
            except KeyboardInterrupt:
                is_new = is_whole and self.step > self._kept and goes_on_at(self.step)
                if is_new and self.accelerator.num_processes == 1:
                    self.save()
                raise
            metrics.log(self.step, found | data.metrics | _timing(data, began, made))
            if on_step is not None:
                on_step(self.step)
            if self.step % self.config.save_every == 0 or self.step == self.config.steps:
                self.save()

    def _gradients(self, objective: Objective, data: StepData) -> dict[str, float]:
        """Leave the clipped gradient of the step in the parameters; returns what is to be shown."""
        lr = self.config.lr * scale_at(self.step, self.config)
        if not data.weight:
            return {"loss": 0.0, "lr": lr, "skipped": 1.0}
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        # Sharded gradients are averaged over the processes; ours are added up.
        scale = (self.accelerator.num_processes if self._is_sharded else 1) / data.weight
        sums: dict[str, float] = {"loss": 0.0}
        for index, micro in enumerate(data.micro):
            is_last = index == len(data.micro) - 1
            with nullcontext() if is_last or not self._is_sharded else self.accelerator.no_sync(self.model):
                loss, shown = objective.loss(micro)
                self.accelerator.backward(loss * scale)
            for name, value in {**shown, "loss": float(loss.detach())}.items():
                sums[name] = sums.get(name, 0.0) + value
        if not self._is_sharded:
            sum_gradients(self.model, self.accelerator)
        found = {name: value / data.weight for name, value in summed(sums, self.accelerator).items()}
        norm = float(self.accelerator.clip_grad_norm_(self.model.parameters(), self.config.clip) or 0.0)
        if not (math.isfinite(found["loss"]) and math.isfinite(norm)):
            raise self._no_number("gradient" if math.isfinite(found["loss"]) else "loss")
        return {"loss": found.pop("loss"), "lr": lr, "grad_norm": norm, **found}

    def _no_number(self, what: str) -> TrainingError:
        kept = self._points.newest_step()
        good = "there is no earlier state" if kept is None else f"the last good state is that of step {kept}"
        return TrainingError(
            f"step {self.step + 1}: the {what} is not a number; {good}",
            hint="lower loop.lr or loop.clip, or look at the data of this step",
        )

    @property
    def _inner_optimizer(self) -> torch.optim.Optimizer:
        optimizer: torch.optim.Optimizer = getattr(self._optimizer, "optimizer", self._optimizer)
        return optimizer


def _timing(data: StepData, began: float, made: float) -> dict[str, float]:
    """`tokens_per_second` counts the update alone, and all tokens where the data says how many there are."""
    update = time.perf_counter() - made
    tokens = data.metrics.get("tokens", data.weight)
    return {
        "seconds/data": made - began,
        "seconds/update": update,
        "tokens_per_second": tokens / update if data.weight else 0.0,
    }
