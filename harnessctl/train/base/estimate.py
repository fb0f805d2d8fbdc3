"""Estimate: how long a training of a model takes that has yet to be cut out of a larger one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import cast

import torch

from harnessctl.train.base.config import BaseConfig
from harnessctl.train.budget import Budget
from harnessctl.train.job import Job


def estimated(job: Job, budget: Budget) -> Budget:
    """`budget` with an estimate for the layers that are kept: 6 operations a parameter and token [Kaplan et al., 2020],
    2 more a parameter of the teacher, at the speed of one matrix product of the model's own size and dtype."""
    config: BaseConfig = job.config
    inner, policy = job.policy.inner, job.policy
    whole = int(inner.config.get_text_config().num_hidden_layers)
    layers = whole if config.cut is None or config.cut.layers is None else len(config.cut.layers)
    embedded = cast(torch.Tensor, inner.get_input_embeddings().weight)
    blocks = inner.num_parameters() - embedded.numel()
    operations = 6 * blocks * layers / whole + (0 if config.distil is None else 2 * blocks)
    left = embedded.new_ones(512, embedded.shape[1])
    with torch.no_grad(), policy.autocast():
        _timed(left, embedded)
        seconds = min(_timed(left, embedded) for _ in range(2))
    speed = 2 * left.shape[0] * embedded.numel() / seconds
    return replace(
        budget,
        note=f"{budget.note}; {layers} of {whole} layers are kept",
        seconds=budget.tokens * operations / speed,
    )


def _timed(left: torch.Tensor, right: torch.Tensor) -> float:
    began = time.perf_counter()
    float(torch.nn.functional.linear(left, right)[0, 0])
    return time.perf_counter() - began
