"""Lineage: where the weights of a checkpoint come from, `lineage.json` of its folder.

What always holds: digests of weights are over names, dtypes, shapes and bytes, however the tensors are spread over files;
`weights` is of the policy alone and `head.weights` of the draft head (`mtp.*`) alone, so that a stage that trains only
the head leaves `weights` as its parent's.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = "harnessctl/lineage.v1"

HeadState = Literal["none", "carried", "stale", "trained"]
HeadSource = Literal["native", "grafted", "fresh"]


class Head(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The draft head. `none`: there is none; `carried`: as the parent has it, beside a policy that has moved on;
    `stale`: likewise, and known not to go with the policy; `trained`: trained for this very policy.

    `source` is where its weights began: `native` (the checkpoint's own), `grafted` (another's) or `fresh`. `depths` is
    how many steps it was trained to draft. `acceptance` is what was measured beside this policy, with the settings it
    was measured at; empty where nothing was.
    """

    state: HeadState = "none"
    source: HeadSource | None = None
    weights: str | None = None
    depths: int | None = None
    acceptance: dict[str, Any] = {}


class Lineage(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT):
    """What a checkpoint was made of. Digests are SHA-256; null where a stage uses no such thing.

    `recipe` is the resolved config and `recipe_digest` its digest; `data` is of what was trained on, `bundles` of the
    harness states that the data was made with (`harness` names it), `world`, `template`, `envelope` and `tokenizer` as
    in trajectories and variations. `parent` is of the weights that the stage began from, `base` of the first ones of the
    line; the paths say where those lay. `adapter`: low-rank adapters were trained and merged. `made` is UTC, ISO 8601.
    """

    stage: str
    base: str
    parent: str
    weights: str = ""
    base_path: str | None = None
    parent_path: str | None = None
    recipe: dict[str, Any] = {}
    recipe_digest: str | None = None
    data: str | None = None
    bundles: list[str] = []
    harness: str | None = None
    world: str | None = None
    template: str | None = None
    envelope: str | None = None
    tokenizer: str | None = None
    steps: int = 0
    seeds: dict[str, int] = {}
    adapter: bool = False
    head: Head = msgspec.field(default_factory=Head)
    versions: dict[str, str] = {}
    made: str | None = None
