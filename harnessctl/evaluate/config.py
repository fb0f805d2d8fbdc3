"""Config of the job `eval`; recipes/eval/default.yaml says what each key means."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl.assembly import LimitsConfig, RunConfig
from harnessctl.errors import UsageError
from harnessctl.manifests.specs.world import FaultRates
from harnessctl.policies import ModelConfig, PolicyName, SamplingConfig

Rate = Annotated[float, Meta(ge=0, le=1)]

#: Policies that answer at once and the same way each time: time stands still for them, and processes share the work.
AT_ONCE = frozenset({"oracle", "scripted"})


class FaultsConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Fault rates in the place of the world's own."""

    timeout: Rate | None = None
    malformed: Rate | None = None
    denied: Rate | None = None
    stale: Rate | None = None
    persist: Rate | None = None

    def over(self, rates: FaultRates) -> FaultRates:
        """`rates` with those that are given here. UsageError when they come to more than every call."""
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        found = msgspec.structs.replace(rates, **given)
        if (share := found.timeout + found.malformed + found.denied + found.stale) > 1:
            raise UsageError(
                f"the fault rates come to {share:g}, and a call goes wrong in one way at most",
                hint="timeout, malformed, denied and stale together are at most 1",
            )
        return found


class EvalConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the job `eval`."""

    suite: str
    model: ModelConfig
    sampling: SamplingConfig
    set: str | None = None
    metrics: list[str] = []
    edit: str | None = None
    harness: str | None = None
    policy: PolicyName = "oracle"
    loop: Literal["harness", "react"] = "harness"
    world: str | None = None
    script: str | None = None
    seed: Annotated[int, Meta(ge=0)] = 0
    n: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None
    repeats: Annotated[int, Meta(ge=1, le=10_000)] = 1
    retries: Annotated[int, Meta(ge=0, le=100)] = 0
    fail_on_error: bool = False
    cache: bool = False
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    simulate: bool = True
    insist: bool = False
    envelope: str | None = None
    variants: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    rewriter: Literal["rules"] | None = None
    user: Literal["script", "llm"] | None = None
    faults: FaultsConfig = msgspec.field(default_factory=FaultsConfig)
    flaw: str | None = None
    flaw_rate: Rate = 1.0
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)
    judge: Literal["panel", "reward", "rejection"] | None = None
    judge_workers: Annotated[int, Meta(ge=1, le=256)] = 8
    judge_tries: Annotated[int, Meta(ge=1, le=20)] = 3

    @property
    def items(self) -> str:
        """The name of the set of items that is asked."""
        return self.set or self.suite

    @property
    def is_at_once(self) -> bool:
        """Whether the policy answers at once and the same way each time."""
        return self.policy in AT_ONCE

    def running(self) -> RunConfig:
        """The keys that say how a request is carried out."""
        return RunConfig(
            model=self.model,
            sampling=self.sampling,
            harness=self.harness,
            policy=self.policy,
            loop=self.loop,
            world=self.world,
            script=self.script,
            seed=self.seed,
            simulate=self.simulate,
            insist=self.insist,
            limits=self.limits,
        )
