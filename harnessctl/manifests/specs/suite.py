"""Suite: what an evaluation asks, how the policy samples, what is counted, and what it must reach [4.1, 4.2, 4.3]."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl.manifests.specs.base import ApiVersion, Name, Slug, Spec

Percent = Annotated[float, Meta(ge=0, le=100, description="in percent, as tables have it")]
Metric = Annotated[Name, Meta(description="a mean of the report: accuracy, average, coverage, ...")]


class SuiteSampling(Spec, kw_only=True):
    """How the policy samples; a key of the command takes the place of each."""

    temperature: Annotated[float, Meta(ge=0)] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 0.95
    max_tokens: Annotated[int, Meta(ge=1)] = 256


class SuiteLimits(Spec, kw_only=True):
    """Limits in the place of the harness's own; only those that no text mentions."""

    deadline_s: Annotated[float, Meta(gt=0, le=1e7)] | None = None
    tool_timeout_s: Annotated[float, Meta(gt=0, le=1e7)] | None = None
    model_retries: Annotated[int, Meta(ge=0, le=1000)] | None = None
    max_parallel_tools: Annotated[int, Meta(ge=1, le=1000)] | None = None


class Gate(Spec, kw_only=True):
    """What a run must reach to pass: `least` by metric, and the share of items that have a score."""

    least: dict[Metric, Percent] = {}
    coverage: Annotated[Percent, Meta(description="share of items that must have a score")] = 100.0


class Suite(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """`manifests/suites/<name>.yaml`. What a key of the command leaves null is taken from here."""

    api_version: ApiVersion
    kind: Literal["Suite"]
    name: Slug
    description: str | None = None
    set: Annotated[Slug, Meta(description="which items are asked: live-qa, variant-qa, ...")]
    n: Annotated[int, Meta(ge=1, le=10_000_000, description="how many items; none: the set's size")] | None = None
    repeats: Annotated[int, Meta(ge=1, le=10_000, description="how often each item is answered")] = 1
    sampling: SuiteSampling = msgspec.field(default_factory=SuiteSampling)
    limits: SuiteLimits = msgspec.field(default_factory=SuiteLimits)
    metrics: Annotated[list[Metric], Meta(description="the table's columns, in order; none: those of the set")] = []
    gate: Gate | None = None
