"""Engine: the machine that a recipe needs, and accelerate set up for it."""

from __future__ import annotations

import os
from typing import Literal

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.utils import DistributedType

from harnessctl.errors import TrainingError
from harnessctl.train.config import TrainConfig
from harnessctl.train.numbers import pick_device


def check_needs(config: TrainConfig, command: str) -> None:
    """TrainingError, before anything is loaded, when this machine lacks what the recipe needs. `command` is how the
    training was asked for."""
    wanted, here = config.needs.gpus, torch.cuda.device_count()
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if wanted and not here:
        raise TrainingError(
            f"this recipe needs {wanted} GPU{'s' * (wanted > 1)}, and torch sees none on this machine",
            hint="run it where there are, or take a model that a CPU can train: model=nano",
        )
    if wanted > max(here, processes):
        raise TrainingError(
            f"this recipe needs {wanted} GPUs; this machine has {here}",
            hint=f"over several machines: accelerate launch --num_machines N --num_processes {wanted} -m {command}",
        )
    if processes < wanted or (config.sharding == "fsdp2" and "WORLD_SIZE" not in os.environ):
        raise TrainingError(
            f"this recipe runs as {max(wanted, 2)} processes, and this is one alone",
            hint=f"accelerate launch --num_processes {max(wanted, 2)} -m {command}",
        )
    pick_device(config.model.device)


def open_accelerator(config: TrainConfig) -> Accelerator:
    """Accelerate for the config's device and sharding; processes find each other by the launcher's environment."""
    is_cpu = pick_device(config.model.device).type == "cpu"
    if config.sharding == "none":
        return Accelerator(cpu=is_cpu)
    return sharding_accelerator(is_cpu=is_cpu)


def sharding_accelerator(
    *, is_cpu: bool, wrap: Literal["transformer_based_wrap", "no_wrap"] = "transformer_based_wrap"
) -> Accelerator:
    """Accelerate with FSDP2; `wrap` is its name for which modules are shared out by themselves.

    TrainingError when it does not come to sharding after all.
    """
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy=wrap, reshard_after_forward=True, cpu_ram_efficient_loading=False
    )
    accelerator = Accelerator(cpu=is_cpu, fsdp_plugin=plugin)
    if is_cpu and accelerator.num_processes > 1:
        # On a CPU accelerate leaves the plugin aside and says nothing, though torch shards between a CPU's processes too.
        accelerator.state.fsdp_plugin = plugin
        accelerator.state.distributed_type = DistributedType.FSDP
    if not accelerator.is_fsdp2:
        raise TrainingError(
            "sharding=fsdp2, and accelerate does not shard here",
            hint="start it with `accelerate launch`, or sharding=none",
        )
    return accelerator
