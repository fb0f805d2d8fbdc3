"""Numbers: which form of floating point a device computes matrix products in."""

from __future__ import annotations

from typing import Literal

import torch

from harnessctl.errors import TrainingError

Dtype = Literal["auto", "float32", "bfloat16"]


def compute_dtype(asked: Dtype, device: torch.device) -> torch.dtype:
    """The dtype of matrix products on `device`. `auto`: bfloat16 where the device has instructions for it, else float32
    (without them bfloat16 is many times slower, not faster)."""
    if asked == "auto":
        return torch.bfloat16 if has_bfloat16(device) else torch.float32
    return torch.bfloat16 if asked == "bfloat16" else torch.float32


def has_bfloat16(device: torch.device) -> bool:
    """Whether `device` multiplies in bfloat16 without emulation."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    found = torch.cpu.get_capabilities()
    return bool(found.get("avx512_bf16") or found.get("amx_bf16") or found.get("bf16"))


def pick_device(asked: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """The device that `model.device` means. TrainingError when CUDA is asked for and there is none."""
    if asked == "cuda" and not torch.cuda.is_available():
        raise TrainingError(
            "model.device=cuda, and torch sees no GPU on this machine",
            hint="train on a machine with one, or give model.device=cpu for a model that a CPU can train (model=nano)",
        )
    return torch.device("cuda" if asked == "cuda" or (asked == "auto" and torch.cuda.is_available()) else "cpu")
