"""Config of the stage sft; recipes/sft/default.yaml says what each key means."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl.assembly import LimitsConfig
from harnessctl.evaluate.config import FaultsConfig
from harnessctl.policies import ModelConfig, SamplingConfig
from harnessctl.train.config import Positive, Share, TrainConfig


class TeacherConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who shows how it is done, in up to `candidates` tries that differ in their seed, of which the first `keep` that are
    accepted are learnt from. A try that fails by itself (no answer, no score) is made again up to `retries` times.

    `flaw` makes the oracle a poor teacher in the share `flaw_rate` of its tries.
    """

    policy: Literal["oracle", "openai"] = "oracle"
    model: ModelConfig = msgspec.field(default_factory=lambda: ModelConfig(name="oracle"))
    sampling: SamplingConfig = msgspec.field(default_factory=SamplingConfig)
    candidates: Annotated[int, Meta(ge=1, le=64)] = 1
    keep: Annotated[int, Meta(ge=1, le=64)] = 1
    retries: Annotated[int, Meta(ge=0, le=16)] = 2
    flaw: str | None = None
    flaw_rate: Share = 1.0


class JudgeConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a candidate must reach at least. Null: that dimension is not looked at."""

    name: Literal["rules"] = "rules"
    accuracy: Share | None = 1.0
    effectiveness: Share | None = 1.0
    tool_rationality: Share | None = None
    skill_selection: Share | None = None


class DataConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is learnt from.

    `path` is a folder of data that was made before, in the place of all else here. `scenarios` is a file of them in the
    place of the world's, `n` how many. `variants` are made for each scenario (harness=hsa). `min_yield` is the share of
    pairs of scenario and harness that must give a sample. Samples of more than `max_tokens` are left out.
    """

    path: str | None = None
    scenarios: str | None = None
    n: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    variants: Annotated[int, Meta(ge=1, le=1000)] = 1
    envelope: str | None = None
    world: str | None = None
    keep_retry_fraction: Share = 0.3
    min_yield: Share = 0.2
    max_tokens: Positive = 4096
    eval_share: Annotated[float, Meta(ge=0, le=0.5)] = 0.05
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    faults: FaultsConfig = msgspec.field(default_factory=FaultsConfig)
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)


class SftConfig(TrainConfig, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the stage sft.

    A step learns from `micro_batches` of `micro_tokens` tokens. `packing` auto: packed where the model keeps sequences in
    one row apart. `recompute` trades a third more time for memory. The loss on held-out scenarios is taken every
    `eval_every` steps.
    """

    harness: Literal["fixed", "hsa"] = "hsa"
    data: DataConfig
    teacher: TeacherConfig = msgspec.field(default_factory=TeacherConfig)
    judge: JudgeConfig = msgspec.field(default_factory=JudgeConfig)
    packing: Literal["auto", "on", "off"] = "auto"
    micro_tokens: Positive = 1024
    micro_batches: Positive = 4
    eval_every: Positive = 50
    recompute: bool = False
