"""Config of the stage base; recipes/base/*.yaml say what each key means."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from harnessctl.train.config import Positive, Share, TrainConfig

Count = Annotated[int, Meta(ge=0)]


class CorpusConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What the at most `size` tokens of a new model are made of: so many `variants` of the harness within `envelope`, each
    answered by an oracle, and the world's tables (0: no harness), and general tasks, `items` of each space."""

    size: Positive = 8000
    variants: Count = 400
    envelope: str | None = None
    items: Positive = 2000


class MakeConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The sizes of a new model in the place of the one that the stage begins from, which only tells it what words mean:
    `neurons` are those of a feed-forward part. With `circuits` its first layers begin with heads that find what stood
    after the same token."""

    layers: Positive = 5
    width: Positive = 256
    heads: Positive = 4
    head_dim: Positive = 64
    neurons: Positive = 512
    rope_theta: Annotated[float, Meta(gt=1)] = 1.0e7
    circuits: bool = True
    vocabulary: CorpusConfig = msgspec.field(default_factory=CorpusConfig)


class ContextConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Learn to foretell what the policy only reads, too: a random `share` of those tokens, each with `weight` where an
    answer's token has 1."""

    share: Share = 0.0
    weight: Annotated[float, Meta(gt=0)] = 0.1


class TasksConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which general tasks are trained on. `shares` weighs them (empty: as each says itself). A list has from
    `entries[0]` to `entries[1]` entries. Over the first `grow_over` steps tasks get harder: the greatest number grows from
    the smallest on, and `ease`, the share of items with names of one word, and of those whose wishes are in the words of
    the list, falls to nothing. `relabel` is the share of dialogues whose names are put into random tokens."""

    shares: dict[str, Annotated[float, Meta(ge=0)]] = {}
    entries: tuple[Annotated[int, Meta(ge=2)], Annotated[int, Meta(ge=2)]] = (2, 10)
    rounds: Positive = 1
    relabel: Share = 0.0
    ease: Share = 0.0
    grow_over: Count = 0


class MeasureConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Exact answers on names never trained on, every so many steps, over `items` dialogues of each task."""

    every: Positive = 50
    items: Positive = 16


class BaseConfig(TrainConfig, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the stage base. A step learns from dialogues of `tokens_per_step` tokens, `micro_tokens` at a time. With
    `compile` torch makes machine code of the model first, for which it needs a C++ compiler."""

    make: MakeConfig | None = None
    context: ContextConfig = msgspec.field(default_factory=ContextConfig)
    tasks: TasksConfig = msgspec.field(default_factory=TasksConfig)
    measure: MeasureConfig = msgspec.field(default_factory=MeasureConfig)
    tokens_per_step: Positive = 6000
    micro_tokens: Positive = 3000
    compile: bool = False
