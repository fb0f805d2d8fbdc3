"""Room: memory that one part of a step has let go of, given back before the next part takes its own.

The keys and values of sampling and the activations of learning come one after the other, and must not stand side by side.
What is let go of stays for a while: in cycles that the collector has not been to, and with the allocator.
"""

from __future__ import annotations

import ctypes
import gc

import torch


def give_back(device: torch.device, *, cycles: bool) -> None:
    """Return what is free: to the GPU's driver, or to the system where its C library can. `cycles`: collect first what holds
    itself."""
    if cycles:
        gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's alone
    if trim is not None:
        trim(0)
