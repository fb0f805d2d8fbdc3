"""Config of the stage mtp-adapt; recipes/mtp-adapt/default.yaml says what each key means."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl.assembly import LimitsConfig
from harnessctl.policies import SamplingConfig
from harnessctl.train.config import Positive, Share, TrainConfig
from harnessctl.train.mtp.collect import StateDtype
from harnessctl.train.mtp.head import Embeddings
from harnessctl.train.mtp.loss import Labels

Init = Literal["random", "last_layer"]
Source = Literal["auto", "native", "grafted", "fresh"]


class SampleConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How the policy answers `n` scenarios, `rows` at once, where no rollouts are given and none were kept; in the share
    `variant_share` of them on a variant of the harness. Temperature and top-p are those that acceptance is measured at."""

    n: Annotated[int, Meta(ge=2)] = 256
    rows: Positive = 32
    world: str | None = None
    variant_share: Share = 0.0
    envelope: str | None = None
    sampling: SamplingConfig = msgspec.field(default_factory=SamplingConfig)
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)


class MtpConfig(TrainConfig, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the stage mtp-adapt."""

    depths: Annotated[int, Meta(ge=1, le=8)] = 3
    weights: Literal["equal", "decay"] = "equal"
    beta: Annotated[float, Meta(gt=0, le=1)] = 0.8
    embeddings: Embeddings = "teacher"
    labels: Labels = "policy"
    source: Source = "auto"
    graft: str | None = None
    init: Init = "random"
    rollouts: str | None = None
    sample: SampleConfig = msgspec.field(default_factory=SampleConfig)
    limit: Positive | None = None
    max_tokens: Annotated[int, Meta(ge=3)] = 4096
    row_tokens: Annotated[int, Meta(ge=3)] = 4096
    rows: Positive = 1
    hidden: str | None = None
    hidden_dtype: StateDtype = "float32"
    shard_tokens: Positive = 1 << 18
    heldout: Positive = 32
    measure_every: Positive | None = None
    temperature: Annotated[float, Meta(gt=0)] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    form: Literal["auto", "fused", "per-expert"] = "auto"
    beside: str | None = None
