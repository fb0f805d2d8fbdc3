"""Held: the state of a training as named tensors, and the way back, whether weights are sharded or not.

Written out here, since `torch.distributed.checkpoint.state_dict` gives a parameter without a gradient the moments of a
made-up step, and cannot put a flat optimizer state back without a process group (torch 2.13).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from harnessctl.errors import CheckpointError

_MODEL, _OPTIMIZER = "model.", "optimizer."


def taken(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What moves, as `model.<parameter>`, and its moments, as `optimizer.<moment>.<parameter>`, on the CPU. Every process
    must call it; the first one gets all, the others nothing."""
    is_first = not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0
    found: dict[str, Tensor] = {}
    for name, value in _named(model, optimizer):
        whole = value.full_tensor() if isinstance(value, DTensor) else value
        if is_first:
            found[name] = whole.detach().cpu()
    return found


def put_back(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give the model and the optimizer what `taken` took from such a pair. Every process must call it with the same.
    CheckpointError when it does not fit."""
    moving = _moving(model)
    saved = {name.removeprefix(_MODEL) for name in tensors if name.startswith(_MODEL)}
    if odd := sorted(moving.keys() ^ saved):
        raise CheckpointError(f"the saved state is of another model: only one of the two has {odd[0]}")
    for name, parameter in moving.items():
        value = tensors[_MODEL + name]
        if parameter.shape != value.shape:
            was, now = tuple(value.shape), tuple(parameter.shape)
            raise CheckpointError(f"the saved state is of another model: {name} has the shape {was}, now {now}")
        with torch.no_grad():
            parameter.copy_(_like(parameter, value))
    for name, value in tensors.items():
        if name.startswith(_OPTIMIZER):
            moment, _, of = name.removeprefix(_OPTIMIZER).partition(".")
            state: Any = optimizer.state[moving[of]]
            # The count of steps too: the fused optimizer reads it where the parameter is.
            state[moment] = _like(moving[of], value) if value.ndim else value.clone().to(moving[of].device)


def _moving(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def _named(model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in _moving(model).items():
        yield _MODEL + name, parameter
        held: Any = optimizer.state.get(parameter, {})
        for moment, value in held.items():
            yield f"{_OPTIMIZER}{moment}.{name}", value


def _like(parameter: Tensor, value: Tensor) -> Tensor:
    """`value` where `parameter` is, and sharded as that is."""
    there = value.to(parameter.device)
    if isinstance(parameter, DTensor):
        return distribute_tensor(there, parameter.device_mesh, parameter.placements)
    return there.clone() if there is value else there
