"""Config of the stage base; recipes/base/*.yaml say what each key means."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from harnessctl.train.config import Positive, TrainConfig

Count = Annotated[int, Meta(ge=0)]


class CorpusConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a reduced vocabulary holds besides single bytes and added tokens.

    The tokens that the tokenizer's `first_merges` make; those of so many `variants` of the harness within `envelope`,
    each answered by an oracle, and of the world's tables (0: of no harness); those that occur `least` times in general
    tasks, `items` of each space.
    """

    first_merges: Count = 4000
    variants: Count = 400
    envelope: str | None = None
    items: Count = 2000
    least: Positive = 3


class CutConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to keep of the model that the stage begins from: `layers`, of each the `neurons` of its feed-forward part that
    matter most to the general tasks, and a `vocabulary`. Null: all."""

    layers: list[int] | None = None
    neurons: Positive | None = None
    vocabulary: CorpusConfig | None = None


class TasksConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which general tasks are trained on. `shares` weighs them (empty: as each says itself). A list has from
    `entries[0]` to `entries[1]` entries; with `grow_over`, the greatest number is reached after so many steps, from the
    smallest on."""

    shares: dict[str, Annotated[float, Meta(ge=0)]] = {}
    entries: tuple[Annotated[int, Meta(ge=2)], Annotated[int, Meta(ge=2)]] = (2, 10)
    grow_over: Count = 0


class DistilConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Learn from a larger model, too: the loss is cross-entropy + `weight` KL(teacher || student) on the answers' tokens.
    `path` null: the model that was cut."""

    path: str | None = None
    weight: Annotated[float, Meta(gt=0)] = 1.0


class MeasureConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Exact answers on names never trained on, every so many steps, over `items` dialogues of each task."""

    every: Positive = 50
    items: Positive = 16


class BaseConfig(TrainConfig, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the stage base. A step learns from dialogues of `tokens_per_step` tokens, `micro_tokens` at a time."""

    cut: CutConfig | None = None
    tasks: TasksConfig = msgspec.field(default_factory=TasksConfig)
    distil: DistilConfig | None = None
    measure: MeasureConfig = msgspec.field(default_factory=MeasureConfig)
    tokens_per_step: Positive = 6000
    micro_tokens: Positive = 3000
