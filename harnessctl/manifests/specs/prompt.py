"""PromptPipeline: the ordered blocks that make the prompt from a request's context."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from harnessctl.manifests.specs.base import ApiVersion, Expression, JsonSchema, Rule, Slug, Spec


class Block(Spec, kw_only=True):
    """One block: a Jinja template, or items (rules, rendered as a list under `heading`).

    Blocks of one role are joined by a blank line. A `user` block frames what the viewer said: it reads
    `messages` (list of {viewer, text, ts}) and, in session mode, is rendered once a turn.
    """

    id: Slug
    template: str | None = None
    items: Annotated[list[Rule], Meta(min_length=1)] | None = None
    heading: str | None = None
    role: Literal["system", "user"] = "system"
    when: Expression | None = None
    after: Annotated[str | None, Meta(description="id of a block that must stand before this one")] = None
    pin: Annotated[bool, Meta(description="keeps its index when blocks are reordered")] = False


class PromptPipeline(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """`manifests/prompts/<name>.yaml`.

    Templates are strict and sandboxed. Names in scope: the inputs; `skills` (list of {name, description, kind} on
    offer; empty in the react loop), `messages`, `limits`, `tool('x')`, `skill('x')`.
    """

    api_version: ApiVersion
    kind: Literal["PromptPipeline"]
    name: Slug
    inputs: Annotated[
        JsonSchema, Meta(description="JSON Schema (an object) of the context; an omitted optional input is null")
    ] = {}
    blocks: Annotated[list[Block], Meta(min_length=1)]
