"""Envelope: how far a harness may be varied, one entry for each augmentation operator [3.2]."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl.manifests.specs.base import ApiVersion, Name, Slug, Spec, Version

Rate = Annotated[float, Meta(ge=0, le=1, description="the share of targets that is changed, 0 to 1")]
Pair = Annotated[list[int | float], Meta(min_length=2, max_length=2)]


class Operator(Spec, kw_only=True):
    """What one operator may do. `allow` and `deny` are names or glob patterns of its targets; deny wins.

    Which of `count`, `ranges` and `options` an operator reads, and what its targets are, is on its page of
    docs/augmentation.md.
    """

    rate: Rate = 1.0
    count: Annotated[Pair | None, Meta(description="how many members an operator adds, from and to")] = None
    ranges: Annotated[dict[Name, Pair], Meta(description="bounds by limit, within the harness's own ranges")] = {}
    allow: list[str] = []
    deny: list[str] = []
    options: dict[str, Any] = {}


class Envelope(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """`manifests/envelopes/<name>.yaml`. An operator that is not named does nothing."""

    api_version: ApiVersion
    kind: Literal["Envelope"]
    name: Slug
    version: Version
    description: str | None = None
    rewriter: Annotated[
        Literal["rules", "llm"], Meta(description="where new wordings come from; `augment rewriter=` overrides it")
    ] = "rules"
    operators: dict[Slug, Operator] = msgspec.field(default_factory=dict)
