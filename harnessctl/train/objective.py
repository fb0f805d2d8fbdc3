"""Objective: what a stage asks of the loop.

What always holds: the data of a step is a function of the seed, the step's number and the weights at that step, so that
a run that was killed and resumed goes the way of one that was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch


@dataclass(slots=True, frozen=True)
class StepData:
    """One step of this process.

    `micro` are its micro-batches: at least one, and as many on every process (pad with empty ones). `weight` is what the
    sum of all losses is divided by, over all micro-batches and processes: mostly the count of policy tokens. A weight of
    0 skips the step's update. `metrics` are of the making of the data, and are logged as the first process has them;
    `tokens` among them is how many tokens go through the model, from which the throughput is told.
    """

    micro: Sequence[Any]
    weight: float
    metrics: dict[str, float] = field(default_factory=dict)


class Objective(Protocol):
    """A stage's loss."""

    def data(self, step: int) -> StepData:
        """The data of step `step` (from 0). May sample from the model, whose weights are those of this step."""
        ...

    def loss(self, micro: Any) -> tuple[torch.Tensor, dict[str, float]]:
        """The SUM of the losses of one micro-batch (a scalar with gradient; a zero times a parameter for an empty one),
        and sums to be shown divided by the weight."""
        ...
