"""Config that all stages share; recipes/<stage>/*.yaml say what each key means."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
#: A decay of moments.
Beta = Annotated[float, Meta(ge=0, lt=1)]


class LoraConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Train low-rank adapters in the place of the weights. `targets` null: every linear layer but the output's."""

    rank: Annotated[int, Meta(ge=1, le=1024)] = 16
    alpha: Annotated[float, Meta(gt=0)] = 32.0
    targets: list[str] | None = None


class PolicyConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The key `model`: what is trained.

    `name` is what records call it; `path` a folder in the Hugging Face layout, or a name of the catalog. `dtype` is what
    matrix products are computed in (weights and optimizer stay float32); auto: bfloat16 where the device has
    instructions for it, else float32.
    """

    name: str
    path: str | None = None
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: Positive | None = None
    lora: LoraConfig | None = None


class LoopConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How long and how fast. `warmup` is in steps; `clip` bounds the norm of the gradient; `save_every` is in steps."""

    steps: Positive
    lr: Annotated[float, Meta(gt=0)]
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    warmup: Annotated[int, Meta(ge=0)] = 0
    weight_decay: Annotated[float, Meta(ge=0)] = 0.0
    betas: tuple[Beta, Beta] = (0.9, 0.95)
    clip: Annotated[float, Meta(gt=0)] = 1.0
    save_every: Positive = 50
    keep: Positive = 2


class NeedsConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a recipe cannot do without: so many GPUs, over all nodes."""

    gpus: Annotated[int, Meta(ge=0)] = 0


class TrainConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What every stage's config has.

    `start` is the checkpoint to begin from; null: the newest one of an earlier stage of the same model in runs/, or the
    model's own `path` where there is none. `bundle` is the harness that is trained under, by its name in the project or
    as a bundle file; null: manifests/harness.yaml. `sharding` fsdp2 shares weights, gradients and moments out among the
    processes. With `debug`, keys have the values that `in_debug` gives them (dotted key: value) where none is given.
    """

    model: PolicyConfig
    loop: LoopConfig
    start: str | None = None
    bundle: str | None = None
    needs: NeedsConfig = msgspec.field(default_factory=NeedsConfig)
    sharding: Literal["none", "fsdp2"] = "none"
    seed: Annotated[int, Meta(ge=0, lt=1 << 32)] = 0
    debug: bool = False
    in_debug: dict[str, int | float | str | bool | None] = {}
