"""Optimizer: AdamW over what moves, and the schedule of its rate."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from harnessctl.errors import TrainingError
from harnessctl.train.config import LoopConfig


def make_optimizer(model: nn.Module, config: LoopConfig) -> torch.optim.Optimizer:
    """AdamW [Loshchilov and Hutter 2019] over the parameters that require gradients."""
    groups = parameter_groups(model, config.weight_decay)
    if not groups:
        raise TrainingError("no parameter of the model requires a gradient, so nothing would be trained")
    return torch.optim.AdamW(groups, lr=config.lr, betas=config.betas, fused=True)


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The parameters that move: matrices with weight decay, vectors (norms, biases) without."""
    moving = [p for p in model.parameters() if p.requires_grad]
    matrices, vectors = [p for p in moving if p.ndim > 1], [p for p in moving if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def scale_at(step: int, config: LoopConfig) -> float:
    """What the learning rate is multiplied with at `step` (from 0): linear warm-up, then the schedule down to 0 after
    the last step."""
    if step < config.warmup:
        return (step + 1) / config.warmup
    if config.schedule == "constant":
        return 1.0
    share = (step - config.warmup) / max(1, config.steps - config.warmup)
    return 1.0 - share if config.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * share))
