"""Trajectory: everything that happened in one request, one line of JSON Lines.

What always holds: `messages` is append-only and in the model's (surface) names; `tools` and `skills` are in canonical
names; a `TokenPath`'s ids concatenate to exactly what the model saw and said.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = "harnessctl/trajectory.v1"

StopReason = Literal[
    "replied",
    "refused",
    "silent",
    "round_limit",
    "deadline",
    "repeat_detected",
    "hook_blocked",
    "model_error",
    "cancelled",
]
ToolStatus = Literal["ok", "error", "timeout", "denied", "invalid", "blocked"]
Route = Literal["public", "private", "silent"]


class Usage(msgspec.Struct, omit_defaults=True):
    """Tokens of one model call, as the endpoint counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class TokenPath(msgspec.Struct, omit_defaults=True):
    """Token ids of one unbroken context. `mask` is 1 where the policy sampled the token; `logprobs` is 0.0 elsewhere.

    All three lists have one length. A call's `tokens` is its half-open range of sampled ids in the path.
    """

    ids: list[int] = []
    mask: list[int] = []
    logprobs: list[float] = []


class ModelCall(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One model call. It saw `messages[:seen]`; its own message is `messages[seen]` unless it failed (`error`).

    Times are seconds since the request began. `ttft_s` is null where the model does not stream. `path` and `tokens`
    point into `paths` where ids are known.
    """

    round: int
    seen: int
    started_s: float
    ended_s: float
    ttft_s: float | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    finish_reason: str | None = None
    reasoning: str | None = None
    attempts: int = 1
    error: str | None = None
    path: int | None = None
    tokens: tuple[int, int] | None = None


class ToolCall(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One tool call and its result. `raw` is what the model wrote where it was not a JSON object of arguments."""

    round: int
    id: str
    name: str
    arguments: dict[str, Any]
    status: ToolStatus
    started_s: float
    ended_s: float
    result: Any = None
    error: str | None = None
    raw: str | None = None
    attempts: int = 1
    fault: str | None = None


class HookDecision(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What one hook decided at one event. `pass` decisions are kept too. `error` names a hook that could not run."""

    hook: str
    event: str
    round: int
    decision: Literal["pass", "block", "retry", "rewrite", "warn", "stop_loop", "fallback", "observed", "error"]
    took_s: float
    reason: str | None = None
    tool: str | None = None
    error: str | None = None


class Trajectory(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT):
    """The record of one request. `started` is UTC, ISO 8601. `limits` are the effective ones, which scorers read.

    `bundle`, `world` and `template` are SHA-256 digests: of the harness state, the world's tables, and the chat
    template where a local model has one (`prompt` is the digest of the rendered system messages and tools).
    """

    id: str
    bundle: str
    harness: str
    loop: Literal["harness", "react"]
    model: str
    request: dict[str, Any]
    context: dict[str, Any]
    limits: dict[str, int | float]
    started: str
    took_s: float
    stop: StopReason
    reply: str
    route: Route
    world: str | None = None
    template: str | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] = []
    calls: list[ModelCall] = []
    tools: list[ToolCall] = []
    hooks: list[HookDecision] = []
    skills: list[str] = []
    paths: list[TokenPath] = []
    sampling: dict[str, Any] = {}
    seeds: dict[str, int] = {}
    session: str | None = None
    turn: int = 0
    error: str | None = None
    warnings: list[str] = []
