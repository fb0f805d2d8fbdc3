"""What the runtime is given from above: a model, and a world that supplies context and tables.

The runtime knows no model and no world by name; anything that fits these Protocols will do, and tests give fakes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from typing import Any, Protocol

import msgspec

from harnessctl.bundle.state import Tool
from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import ToolStatus, Usage


class Sampling(msgspec.Struct, omit_defaults=True, kw_only=True):
    """How the model samples. Null leaves the choice to the endpoint."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: list[str] = []


class ModelToolCall(msgspec.Struct):
    """A call as the model wrote it: surface name, arguments as text (not yet known to be JSON)."""

    id: str
    name: str
    arguments: str


class ModelRequest(msgspec.Struct, kw_only=True):
    """One model call.

    `messages` is the whole context in OpenAI chat form; `tools` are OpenAI function tools; both in surface names.
    `prefix_ids` are the ids of `messages[:prefix_messages]` as an earlier call returned them: a model that works on
    ids appends to them and never renders those messages again. `cache_key` is equal for requests that share
    `messages[:stable]` and `tools`, so that their encoded form may be kept. `deadline` is on time.monotonic().
    `tool_choice` is `auto`, `none`, `required`, or the surface name of the one tool that must be called. It and
    `reply_schema` (a text reply must be JSON that fits it) are kept by models that decode under a grammar.
    `request_id` is the id of the request that the call is made for.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    sampling: Sampling
    deadline: float
    prefix_ids: list[int] | None = None
    prefix_messages: int = 0
    cache_key: str = ""
    stable: int = 0
    tool_choice: str = "auto"
    reply_schema: dict[str, Any] | None = None
    request_id: str = ""


class ModelReply(msgspec.Struct, kw_only=True):
    """What the model answered. `reasoning` is kept apart from `content`.

    Where ids are known, `prompt_ids` is the whole context that was seen and begins with `prefix_ids`;
    `completion_ids` are the sampled ids, the end-of-turn id included when it was sampled; `logprobs` as many.
    """

    content: str | None = None
    tool_calls: list[ModelToolCall] = []
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    ttft_s: float | None = None
    prompt_ids: list[int] | None = None
    completion_ids: list[int] | None = None
    logprobs: list[float] | None = None


class Model(Protocol):
    """A policy. `complete` raises ModelError and nothing else; it is safe to call concurrently.

    `template` is the digest of the chat template where the model renders one itself, else null.
    """

    name: str
    template: str | None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request; stops (ModelError) at the deadline."""
        ...

    async def aclose(self) -> None:
        """Release connections and threads."""
        ...


class World(Protocol):
    """Where context and sandboxed tools read from. `digest` is over the tables' content before any change."""

    digest: str

    def context(self, request: CommentInput, names: Collection[str] | None = None) -> dict[str, Any]:
        """The prompt inputs that the world can supply for this request (room, links, retrieved FAQ, ...); of `names`
        only, where they are given."""
        ...

    def connection(self) -> sqlite3.Connection:
        """A SQLite connection for the calling thread."""
        ...

    def search_faq(self, query: str, *, where: dict[str, Any], top_k: int) -> list[dict[str, Any]]:
        """The best answers to `query` by full-text search, best first."""
        ...


class SandboxedWorld(World, Protocol):
    """A world of which each request can have a copy of its own."""

    def sandbox(self) -> SandboxedWorld:
        """A private copy in the first state; gone when it is closed or forgotten."""
        ...

    def rest(self) -> None:
        """Release what costs memory until the next use; what was written stays."""
        ...

    def close(self) -> None:
        """Release the copy; closing twice is allowed."""
        ...


class ToolContext(msgspec.Struct, kw_only=True):
    """What a python tool receives as its argument `ctx`, if it declares one.

    `session` is a dict that lives as long as the session (or the request, without one) and belongs to the tools.
    """

    context: dict[str, Any]
    session: dict[str, Any]
    world: World | None
    limits: dict[str, int | float]
    deadline: float


class InjectedFault(msgspec.Struct, kw_only=True, frozen=True):
    """A fault that a simulator puts in the place of a tool's answer.

    Without `change` the tool is not called, and the call comes to `status` with `error`. With it the tool is called, and
    what it gave is altered; a call that fails by itself stays as it is.
    """

    kind: str
    status: ToolStatus = "ok"
    error: str | None = None
    change: Callable[[Any], Any] | None = None


class FaultSource(Protocol):
    """Which calls of a simulation go wrong. Equal arguments give equal answers, whatever was asked before."""

    def draw(self, request_id: str, tool: Tool, args: dict[str, Any], number: int) -> InjectedFault | None:
        """The fault of the request's `number`-th call (from 0) of this tool with these arguments (canonical names)."""
        ...
