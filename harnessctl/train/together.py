"""Together: sums over the processes of a training."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn

#: Gradients are sent in pieces of so many numbers, to bound the memory of the copies.
_PIECE = 1 << 25


def sum_gradients(model: nn.Module, accelerator: Accelerator) -> None:
    """Add up the gradients of the replicas. A parameter that had none in any process keeps none."""
    if accelerator.num_processes == 1:
        return
    moving = [p for p in model.parameters() if p.requires_grad]
    held = torch.tensor([float(p.grad is not None) for p in moving], device=accelerator.device)
    torch.distributed.all_reduce(held)
    piece: list[torch.Tensor] = []
    for parameter, count in zip(moving, held.tolist(), strict=True):
        if not count:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        piece.append(parameter.grad)
        if sum(grad.numel() for grad in piece) >= _PIECE:
            _sum(piece)
            piece = []
    _sum(piece)


def _sum(piece: list[torch.Tensor]) -> None:
    if not piece:
        return
    flat = torch.cat([grad.flatten() for grad in piece])
    torch.distributed.all_reduce(flat)
    for grad, part in zip(piece, flat.split([grad.numel() for grad in piece]), strict=True):
        grad.copy_(part.view_as(grad))


def summed(sums: Mapping[str, float], accelerator: Accelerator) -> dict[str, float]:
    """The sums of all processes, by name; a process may lack a name."""
    if accelerator.num_processes == 1:
        return dict(sums)
    found: dict[str, float] = {}
    for other in gather_object([dict(sums)]):
        for name, value in other.items():
            found[name] = found.get(name, 0.0) + value
    return found
