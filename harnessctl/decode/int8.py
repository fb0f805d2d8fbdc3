"""Int8 weights: linear layers with one scale a row, for machines where reading the weights is what decoding waits for.

Weights alone are rounded, activations are not quantised: that keeps greedy outputs sane, where torch's dynamic
quantisation of activations (deprecated besides) does not. CPU only. Numbers are in docs/local-model.md.
"""

from __future__ import annotations

import torch
from torch import nn

# Up to this many rows the int8 kernel wins; beyond, unpacking the weights once and multiplying in float32 does.
KERNEL_ROWS = 16


class Int8Linear(nn.Module):
    """y = x (q * scale)^T + bias with q in int8, scale (out,) in float32; x is (..., in) in float32."""

    q: torch.Tensor
    scale: torch.Tensor
    kernel_scale: torch.Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        scale = weight.abs().amax(dim=1).clamp(min=1e-12) / 127
        self.register_buffer("q", (weight / scale[:, None]).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.register_buffer("kernel_scale", scale.to(torch.bfloat16))
        self.bias = linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        if len(rows) <= KERNEL_ROWS:
            y = torch._weight_int8pack_mm(rows.to(torch.bfloat16), self.q, self.kernel_scale).to(x.dtype)
        else:
            y = rows @ (self.q.to(x.dtype) * self.scale[:, None]).T
        if self.bias is not None:
            y = y + self.bias
        return y.view(*x.shape[:-1], -1)


def quantise_linears(model: nn.Module) -> None:
    """Replace every linear layer of `model` in place, the output head too; embeddings stay as they are."""
    for name, module in list(model.named_modules()):
        if type(module) is nn.Linear:
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, Int8Linear(module))
