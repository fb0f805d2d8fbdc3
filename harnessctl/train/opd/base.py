"""Base: the model that the policy is drawn back to: the one that its lineage began with.

What always holds: adapters are switched off in its place only where the weights without them are proven to be the base's,
by digest; otherwise a second copy is read, whose digest is the lineage's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from accelerate import Accelerator
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from harnessctl.checkpoint.policy import check_tokenizer, is_base
from harnessctl.decode.catalog import locate
from harnessctl.decode.weights import load_weights
from harnessctl.errors import TrainingError
from harnessctl.train.opd.config import OpdConfig
from harnessctl.train.policy import Policy
from harnessctl.train.sft.rows import Rows
from harnessctl.train.sft.token_loss import TokenLoss


class Base(Protocol):
    """Next-token distributions to be near to; none of it has a gradient."""

    def states(self, rows: Rows) -> torch.Tensor:
        """The last states at the rows' chosen positions: (n, width)."""
        ...

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """The logits of states: (n, vocabulary)."""
        ...


class AdapterOff:
    """The policy's own model without its adapters. `module` is the TokenLoss around it, as the loop has prepared it."""

    def __init__(self, module: TokenLoss, policy: Policy) -> None:
        self._module = module
        self._policy = policy

    def states(self, rows: Rows) -> torch.Tensor:
        """The states with adapters off."""
        with torch.no_grad(), self._policy.adapter_off():
            states: torch.Tensor = self._module(rows, None)[0]
        return states

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """By the output matrix, which has no adapter and is not trained."""
        return self._module.logits(states)


class Copy:
    """A second copy in memory."""

    def __init__(self, module: TokenLoss) -> None:
        self._module = module.requires_grad_(False)

    def states(self, rows: Rows) -> torch.Tensor:
        """The copy's states."""
        with torch.no_grad():
            states: torch.Tensor = self._module(rows, None)[0]
        return states

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """By the copy's own output matrix."""
        return self._module.logits(states)


@dataclass(slots=True, frozen=True)
class Found:
    """Where the base is. `path` null: in the policy itself, under its adapters."""

    path: Path | None


def find_base(policy: Policy, config: OpdConfig, talk: Callable[[str], None]) -> Found:
    """Find the base of the policy's lineage, and prove that it is.

    The base of a policy without lineage is what it began from. TrainingError where the base is not to be had,
    CheckpointError where its tokenizer is not the policy's.
    """
    lineage = policy.lineage
    if config.base == "auto" and policy.has_adapter and not _has_adapted_head(policy):
        if lineage is None or is_base(lineage, policy.source):
            talk("base: the policy without its adapters, whose weights are the lineage's base by digest")
            return Found(None)
        talk("base: a second copy, since the policy without its adapters is not the base of its lineage")
    named = config.base_path or (str(policy.source) if lineage is None else lineage.base_path)
    if named is None:
        raise TrainingError("the lineage does not say where its base lies", hint="give base_path=FOLDER")
    path = locate(named).path
    if lineage is not None and not is_base(lineage, path):
        raise TrainingError(
            f"{path} does not hold the base of the policy's lineage ({lineage.base[:12]})",
            hint="give base_path=FOLDER of the model that the first stage began from",
        )
    check_tokenizer(policy.source, path)
    talk(f"base: a second copy, read from {path}")
    return Found(path)


def open_base(found: Found, module: TokenLoss, policy: Policy, accelerator: Accelerator) -> Base:
    """The base; `module` is the policy's, as the loop has prepared it. A second copy is computed in what the policy is
    computed in, and shared out among the processes where the policy is."""
    if found.path is None:
        return AdapterOff(module, policy)
    dtype = "bfloat16" if policy.dtype is torch.bfloat16 else "float32"
    device = "cpu" if accelerator.is_fsdp2 else str(policy.device)
    copy = TokenLoss(load_weights(found.path, dtype=dtype, device=device).model)
    copy.why_not_packed()  # it reads the rows that the policy reads, and is of the same kind
    if not accelerator.is_fsdp2:
        return Copy(copy)
    mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
    for layer in copy.modules():
        if type(layer).__name__ in copy._no_split_modules:
            fully_shard(layer, mesh=mesh)
    # What is outside the layers, the output matrix among it, stays whole after a pass: logits are taken behind it.
    fully_shard(copy, mesh=mesh, reshard_after_forward=False)
    return Copy(copy)


def _has_adapted_head(policy: Policy) -> bool:
    """Whether the output matrix is itself adapted: the base's logits would not be those of the states alone."""
    return hasattr(policy.inner.get_output_embeddings(), "lora_A")
