"""Config of the stage rl; recipes/rl/default.yaml says what each key means."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl.assembly import LimitsConfig
from harnessctl.errors import UsageError
from harnessctl.evaluate.config import EvalConfig, FaultsConfig
from harnessctl.policies import ModelConfig, SamplingConfig
from harnessctl.train.config import Positive, Share, TrainConfig
from harnessctl.train.rl.penalty import Penalty

#: Added to the seed, so that no scenario of this stage is one that an evaluation or the stage sft draws.
SEEDS_APART = 1 << 32
#: A request's deadline unless the recipe says otherwise: a rollout among many waits for the others, and must not be cut off by it.
DEADLINE_S = 36_000.0


class RolloutConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who samples. `local`: this process, `rows` requests at once. `sglang`: the servers at `urls`, each process
    of the training asking one of them for up to `rows` at once; they are told to load the weights from disk before each batch.

    `grammar` holds tool calls to their schemas while they are sampled: what is learnt from is then not quite what the policy would
    have said, which the metric `mismatch` does not show. `reasoning`: a `<think>` block may stand before what a grammar holds.
    """

    backend: Literal["local", "sglang"] = "local"
    urls: list[str] = []
    key_env: str | None = None
    rows: Positive = 32
    grammar: bool = False
    reasoning: bool = False

    def check(self) -> None:
        """UsageError when keys do not go together."""
        if self.backend == "sglang" and not self.urls:
            raise UsageError("rollout.backend=sglang needs rollout.urls", hint="rollout.urls=[http://127.0.0.1:30000]")


class RlConfig(TrainConfig, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the stage rl.

    A batch is `groups` groups of `rollouts` rollouts, from which `updates` steps are taken; `items` bounds the scenarios that there are. `ratio`,
    `clip_low`, `clip_high` and `kl` are of the loss, `cot` of the penalty on the length of reasoning. Micro-batches have
    `micro_tokens` tokens. `prefix` shared: the common beginning of a group is computed once, where the model can.
    """

    world: str | None = None
    groups: Positive = 8
    rollouts: Annotated[int, Meta(ge=2, le=1024)] = 8
    items: Positive | None = None
    variant_share: Share = 0.5
    envelope: str | None = None
    faults: FaultsConfig = msgspec.field(default_factory=FaultsConfig)
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)
    sampling: SamplingConfig = msgspec.field(default_factory=SamplingConfig)
    rollout: RolloutConfig = msgspec.field(default_factory=RolloutConfig)
    reward: Literal["rules"] = "rules"
    updates: Annotated[int, Meta(ge=1, le=64)] = 1
    ratio: Literal["token", "sequence"] = "token"
    clip_low: Annotated[float, Meta(gt=0, lt=1)] = 0.2
    clip_high: Annotated[float, Meta(gt=0)] = 0.28
    kl: Annotated[float, Meta(ge=0)] = 0.0
    cot: Penalty = msgspec.field(default_factory=Penalty)
    prefix: Literal["shared", "padded"] = "shared"
    micro_tokens: Positive = 4096
    recompute: bool = False
    keep_rollouts: Annotated[int, Meta(ge=0)] = 1

    @property
    def temperature(self) -> float:
        """What logits are divided by, in sampling and in the loss."""
        return 1.0 if self.sampling.temperature is None else self.sampling.temperature

    def check(self) -> None:
        """UsageError when keys do not go together."""
        if self.temperature == 0:
            raise UsageError(
                "sampling.temperature is 0, and rollouts of a group would all be the same", hint="1.0 is usual"
            )
        if self.sampling.top_p is not None and self.sampling.top_p < 1:
            raise UsageError(
                f"sampling.top_p is {self.sampling.top_p:g}: what is learnt would not be what was drawn",
                hint="sampling.top_p=1.0; a temperature is taken into account by the loss",
            )
        self.rollout.check()
        for name in ("save_every", "steps"):
            if (value := getattr(self.loop, name)) % self.updates:
                raise UsageError(
                    f"loop.{name} is {value}; with updates={self.updates} allowed are multiples of that",
                    hint="rollouts belong to the weights before their first update, so a run can go on only between batches",
                )

    def evaluation(self) -> EvalConfig:
        """How rollouts are carried out: as an evaluation does it, with the policy that is given."""
        limits = self.limits
        if limits.deadline_s is None:
            limits = msgspec.structs.replace(limits, deadline_s=DEADLINE_S)
        return EvalConfig(
            suite="live-qa",
            model=ModelConfig(name=self.model.name),
            sampling=msgspec.structs.replace(self.sampling, temperature=self.temperature),
            policy="local",
            world=self.world,
            seed=SEEDS_APART + self.seed,
            envelope=self.envelope,
            rewriter="rules",
            faults=self.faults,
            limits=limits,
        )
