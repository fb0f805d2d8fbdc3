"""Run: what one job was given and how it ended, `run.json` of a run folder."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = "harnessctl/run.v1"


class Run(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT):
    """One run. Times are UTC, ISO 8601. `config` is the digest of config.yaml's content.

    `counts` holds what the job counts (items, done, reused, failed, a stop reason each); `versions` are of harnessctl,
    Python and the packages that matter; `commit` is the project's git revision, with `+` when the tree was dirty.
    """

    job: str
    name: str
    started: str
    config: str
    status: Literal["running", "done", "failed", "interrupted"] = "running"
    finished: str | None = None
    bundle: str | None = None
    harness: str | None = None
    world: str | None = None
    policy: str | None = None
    counts: dict[str, int] = {}
    seeds: dict[str, int] = {}
    versions: dict[str, str] = {}
    commit: str | None = None
    argv: list[str] = []
    outputs: dict[str, str] = {}
    notes: list[str] = []
    extra: dict[str, Any] = {}
