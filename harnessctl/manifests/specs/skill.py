"""Skill: Agent Skills front matter, and the few-shot examples that may lie beside it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from harnessctl.manifests.specs.base import ApiVersion, Slug, Spec


class SkillFrontMatter(Spec, kw_only=True, rename={"allowed_tools": "allowed-tools"}):
    """The front matter of `skills/<name>/SKILL.md`, exactly the fields of the Agent Skills specification.

    Ours are strings under `metadata`: `version` (semantic version) and `kind` (`reply` or `strategy`).
    """

    name: Annotated[Slug, Meta(description="lower-case letters, digits and single hyphens; equal to the folder's name")]
    description: Annotated[
        str, Meta(min_length=1, max_length=1024, description="what the skill does and when to load it")
    ]
    license: str | None = None
    compatibility: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    metadata: dict[str, str] = {}
    allowed_tools: Annotated[str | None, Meta(description="tool names, separated by spaces")] = None


class ExampleCall(Spec, kw_only=True):
    """A tool call in canonical names and arguments."""

    tool: str
    arguments: dict[str, Any] = {}


class ExampleMessage(Spec, kw_only=True):
    """One message of an example: viewer text, calls, a tool's result, or the host's reply."""

    role: Literal["user", "assistant", "tool"]
    content: str | None = None
    calls: list[ExampleCall] = []


class Example(Spec, kw_only=True):
    """A worked exchange, shown to the model with the skill's body."""

    messages: Annotated[list[ExampleMessage], Meta(min_length=2)]


class Examples(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """`skills/<name>/examples.yaml`: few-shot examples of a skill."""

    api_version: ApiVersion
    kind: Literal["Examples"]
    examples: Annotated[list[Example], Meta(min_length=1)]
