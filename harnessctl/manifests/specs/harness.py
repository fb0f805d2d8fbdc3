"""Harness: which skills, tools, hooks and prompt make one agent, and its limits."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl.manifests.specs.base import ApiVersion, Expression, JsonSchema, Limit, Name, Slug, Spec, Version

Route = Literal["public", "private", "silent"]

#: Limits that the runtime reads, with the value that holds where a harness names none.
DEFAULT_LIMITS: dict[str, int | float] = {
    "max_rounds": 4,
    "tool_timeout_s": 5.0,
    "deadline_s": 15.0,
    "max_turns": 20,
    "max_parallel_tools": 4,
    "max_repeats": 3,
    "model_retries": 2,
    "max_message_chars": 4000,
    "tool_result_max_chars": 16000,
}


class Include(Spec, kw_only=True):
    """Names or glob patterns. Skills: folders of skills/. Tools and hooks: file stems of manifests/tools, manifests/hooks."""

    skills: list[str] = []
    tools: list[str] = []
    hooks: list[str] = []


class Session(Spec, kw_only=True):
    """What one turn of a session leaves to the next."""

    keep: list[Literal["calls", "skills", "history"]] = []


class RoutePolicy(Spec, kw_only=True):
    """Where a reply goes; the first expression that is true decides."""

    default: Route = "public"
    private_when: Expression | None = None
    silent_when: Expression | None = None


class Reply(Spec, kw_only=True):
    """Form and destination of the final reply."""

    format: Literal["text", "json"] = "text"
    schema: JsonSchema | None = None
    route: RoutePolicy = msgspec.field(default_factory=RoutePolicy)


class Scores(Spec, kw_only=True):
    """For a judge: JSON Pointers into its reply."""

    accuracy: str | None = None
    effectiveness: str | None = None


class Harness(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """`manifests/<name>.yaml`; manifests/harness.yaml is the default one."""

    api_version: ApiVersion
    kind: Literal["Harness"]
    name: Slug
    version: Version
    include: Include
    prompt: Annotated[str, Meta(description="file stem in manifests/prompts")]
    world: Annotated[
        str | None, Meta(description="file stem in manifests/worlds: where context and sandboxed tools read from")
    ] = None
    limits: dict[Name, int | float | Limit] = {}
    session: Session = msgspec.field(default_factory=Session)
    require_skill: Annotated[
        Literal["reply", "none"], Meta(description="reply: a Reply Skill must be loaded before a substantive reply")
    ] = "none"
    reply: Reply = msgspec.field(default_factory=Reply)
    scores: Scores | None = None
