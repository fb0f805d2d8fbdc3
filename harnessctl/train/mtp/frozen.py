"""Frozen: the policy beside which a head is trained, of which no weight moves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from harnessctl.decode.weights import load_weights
from harnessctl.errors import UsageError
from harnessctl.train.job import Job
from harnessctl.train.mtp.config import MtpConfig
from harnessctl.train.numbers import compute_dtype, pick_device


@dataclass(frozen=True)
class Frozen:
    """`folder` is where the model was read from; `is_own`: nobody else holds it."""

    model: PreTrainedModel
    folder: Path
    is_own: bool = False

    @property
    def vocabulary(self) -> int:
        """The number of tokens that the model knows."""
        return int(self.model.config.get_text_config(decoder=True).vocab_size)

    @property
    def width(self) -> int:
        """The number of values in a hidden state."""
        return int(self.model.config.get_text_config(decoder=True).hidden_size)

    def autocast(self) -> Any:
        """Matrix products in the dtype of the policy's weights while it is entered."""
        dtype = self.model.dtype
        return torch.autocast(self.model.device.type, dtype=dtype, enabled=dtype is not torch.float32)

    def drop_layers(self) -> None:
        """Let go of the decoder's layers, once the states are collected: a head needs embeddings, output layer and rotary
        angles alone. Not where somebody else holds the model."""
        if self.is_own:
            self.model.get_decoder().layers = nn.ModuleList()


def open_frozen(job: Job) -> Frozen:
    """The policy of `job`. Where products are bfloat16 its weights are too: float32 ones, which training needs to move
    them, would take twice the memory for nothing."""
    config: MtpConfig = job.config
    if config.model.lora is not None:
        raise UsageError("mtp-adapt trains the draft head alone, and takes no adapters", hint="model.lora=null")
    if config.sharding != "none":
        raise UsageError(
            f"sharding={config.sharding}: one decoder layer is trained, which fits where the policy does",
            hint="sharding=none; several processes share the data",
        )
    device = pick_device(config.model.device) if job.accelerator is None else job.accelerator.device
    if compute_dtype(config.model.dtype, device) is torch.float32:
        return Frozen(job.policy.inner.requires_grad_(False), job.start)
    weights = load_weights(job.start, dtype="bfloat16", device=str(device))
    return Frozen(weights.model.requires_grad_(False), job.start, is_own=True)
