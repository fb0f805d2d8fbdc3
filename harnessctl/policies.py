"""Policies: which model a config means, made ready.

`policy=local | openai | scripted | oracle`; the trained policies of later stages are local models by path. The oracle
knows the gold of scenarios, so only jobs that have scenarios can use it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl.bundle.files import Bundle
from harnessctl.errors import UsageError
from harnessctl.records.scenario import Scenario
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.loop import Loop
from harnessctl.runtime.protocols import Model, Sampling

if TYPE_CHECKING:
    from harnessctl.runtime.models.endpoint import Endpoint
    from harnessctl.runtime.surface import SurfaceView

if TYPE_CHECKING:
    from harnessctl.simulate.plan import Planner

PolicyName = Literal["local", "openai", "scripted", "oracle"]


class PriceConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a million tokens cost, read and written, in any one currency."""

    prompt: Annotated[float, Meta(ge=0)]
    completion: Annotated[float, Meta(ge=0)]


class ModelConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The group `model` of a recipe. `name` is a registry name, a folder, or the endpoint's name for the model."""

    name: str
    base_url: str | None = None
    key_env: str | None = None
    stream: bool = True
    dtype: Literal["auto", "float32", "bfloat16", "int8"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int | None = None
    reasoning: bool = False
    body: dict[str, Any] = {}
    price: PriceConfig | None = None


class SamplingConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The group `sampling` of a recipe."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None


@dataclass(slots=True, frozen=True)
class OracleSource:
    """What policy=oracle plays: the scenarios by the request's id, under `bundle`, a variant or not.

    `flaw` makes it a degraded oracle for the share `flaw_rate` of the requests; `loop` and `clock` are the agent's;
    `planner` and `surface` are for the same state, so that what they worked out is not worked out again.
    """

    bundle: Bundle
    scenarios: Callable[[str], Scenario]
    seed: int = 0
    flaw: str | None = None
    flaw_rate: float = 1.0
    loop: Loop = "harness"
    clock: Clock | None = None
    planner: Planner | None = None
    surface: SurfaceView | None = None


def open_policy(
    policy: PolicyName, model: ModelConfig, *, script: str | None = None, oracle: OracleSource | None = None
) -> Model:
    """The policy, loaded. UsageError or StorageError say what is missing; nothing is downloaded."""
    if policy == "oracle":
        return open_oracle(oracle)
    if policy == "scripted":
        from harnessctl.runtime.models.scripted import ScriptedModel

        if script is None:
            raise UsageError("policy=scripted needs script=FILE", hint="`harnessctl docs running` shows its format")
        return ScriptedModel.from_file(Path(script))
    if policy == "openai":
        from harnessctl.runtime.models.openai import OpenAIModel

        return OpenAIModel(endpoint_of(model))
    from harnessctl.decode.opening import open_local

    device = None if model.device == "auto" else model.device
    return open_local(model.name, dtype=model.dtype, device=device, threads=model.threads, reasoning=model.reasoning)


def open_oracle(source: OracleSource | None) -> Model:
    """The oracle; UsageError where there are no scenarios for it to know."""
    if source is None:
        raise UsageError(
            "policy=oracle answers scenarios, whose gold it knows; comments have none",
            hint="`harnessctl eval live-qa policy=oracle` draws scenarios",
        )
    from harnessctl.simulate.flaws import flaw
    from harnessctl.simulate.oracle import Oracle

    return Oracle(
        source.bundle,
        source.scenarios,
        seed=source.seed,
        flaw=None if source.flaw is None else flaw(source.flaw),
        rate=source.flaw_rate,
        loop=source.loop,
        clock=source.clock,
        planner=source.planner,
        surface=source.surface,
    )


def endpoint_of(model: ModelConfig) -> Endpoint:
    """The endpoint of a config."""
    from harnessctl.runtime.models.endpoint import Endpoint

    return Endpoint(
        model=model.name, base_url=model.base_url, key_env=model.key_env, stream=model.stream, body=model.body
    )


def sampling_of(config: SamplingConfig, *, seed: int | None) -> Sampling:
    """The sampling of a run; `seed` makes a local model repeat itself, and is sent to an endpoint."""
    return Sampling(temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens, seed=seed)
