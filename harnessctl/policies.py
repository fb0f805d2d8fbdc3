"""Policies: which model a config means, made ready.

`policy=local | openai | scripted`; the trained policies of later stages are local models by path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from harnessctl.errors import UsageError
from harnessctl.runtime.protocols import Model, Sampling

PolicyName = Literal["local", "openai", "scripted"]


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


class SamplingConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The group `sampling` of a recipe."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None


def open_policy(policy: PolicyName, model: ModelConfig, *, script: str | None = None) -> Model:
    """The policy, loaded. UsageError or StorageError say what is missing; nothing is downloaded."""
    if policy == "scripted":
        from harnessctl.runtime.models.scripted import ScriptedModel

        if script is None:
            raise UsageError("policy=scripted needs script=FILE", hint="`harnessctl docs running` shows its format")
        return ScriptedModel.from_file(Path(script))
    if policy == "openai":
        from harnessctl.runtime.models.endpoint import Endpoint
        from harnessctl.runtime.models.openai import OpenAIModel

        endpoint = Endpoint(
            model=model.name, base_url=model.base_url, key_env=model.key_env, stream=model.stream, body=model.body
        )
        return OpenAIModel(endpoint)
    from harnessctl.decode.opening import open_local

    device = None if model.device == "auto" else model.device
    return open_local(model.name, dtype=model.dtype, device=device, threads=model.threads, reasoning=model.reasoning)


def sampling_of(config: SamplingConfig, *, seed: int | None) -> Sampling:
    """The sampling of a run; `seed` makes a local model repeat itself, and is sent to an endpoint."""
    return Sampling(temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens, seed=seed)
