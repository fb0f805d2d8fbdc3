"""Vote: what one voter of a panel says of one item, one line of votes.jsonl.

What always holds: a vote has both scores, or neither and the cause.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = "harnessctl/vote.v1"

#: Why a vote has no score. The first seven are of the answer, the others of the way to it.
Cause = Literal[
    "nothing",
    "prose",
    "broken-json",
    "missing",
    "out-of-range",
    "other-item",
    "no-reason",
    "endpoint",
    "deadline",
    "harness",
]


class Vote(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT):
    """`id` is the trajectory's; `voter` the model's name in roles.yaml, `model` the endpoint's name for it.

    `harness` and `judge` are name and digest of the judge's bundle. `key` is the SHA-256 of all that the answer depends
    on. `attempts` counts the requests to the judge, whose trajectories in judgements.jsonl are called
    `judge-<16 hex of key>-<attempt>`; `lookups` its calls of evidence tools that came to a result. `error` is the cause in words.
    """

    id: str
    voter: str
    model: str
    harness: str
    judge: str
    key: str
    accuracy: float | None = None
    effectiveness: float | None = None
    reason: str = ""
    attempts: int = 0
    cause: Cause | None = None
    error: str | None = None
    lookups: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
