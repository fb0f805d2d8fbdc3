"""LogMapping: how a line of somebody's log becomes a scenario, field by field.

A field is read from where its source says: a JSON Pointer (`/request/text`); a list with a pointer in it, whose texts are
joined by line breaks; or anything else, which stands for itself. `{value: ...}` stands for itself whatever it looks like,
and `{at: /pointer, default: ...}` says what a missing value is. A null is a missing value.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl.manifests.specs.base import END, ApiVersion, Name, Slug, Spec

Pointer = Annotated[
    str,
    Meta(
        pattern=r"^(/([^~/]|~[01])*)*" + END,
        description="a JSON Pointer: `` for the whole, `/a/0` for a member of a member",
    ),
]


#: A pointer, several pointers, a constant, or one of the two spelled out.
Source = Any


class Messages(Spec, kw_only=True):
    """Several comments answered by one reply: the list at `at`, and the fields of each member."""

    at: Pointer
    text: Source = "/text"
    viewer: Source = None
    ts: Source = None


class Calls(Spec, kw_only=True):
    """Tool calls: the list at `at`, and the fields of each member. `arguments` may be JSON text.

    `compare` lists the arguments that must be equal; null means all that are given. `only` and `without` pick the calls
    by tool.
    """

    at: Pointer
    tool: Source = "/name"
    arguments: Source = "/arguments"
    status: Source = None
    compare: dict[str, list[str]] = {}
    only: list[str] | None = None
    without: list[str] = []


class LoggedFields(Spec, kw_only=True):
    """What was answered."""

    reply: Source = None
    skills: Source = None
    tools: Calls | None = None
    stop: Source = None
    route: Source = None


class GoldFields(Spec, kw_only=True):
    """What a right answer does, where the log says it. `facts` and `claims` are lists of texts."""

    skills: Source = None
    calls: Calls | None = None
    facts: Source = None
    claims: Source = None
    replies: Source = None
    route: Source = None
    stop: Source = None
    known: dict[Name, Source] = {}


class LogMapping(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """`manifests/mappings/<name>.yaml`. `items` is where a JSON document has its list of requests.

    `text` or `messages` is needed. Without `id` requests are numbered; without `language` it is told from the script of
    the text.
    """

    api_version: ApiVersion
    kind: Literal["LogMapping"]
    name: Slug
    harness: Annotated[Slug | None, Meta(description="the harness that gold is for")] = None
    items: Pointer = ""
    id: Source = None
    text: Source = None
    messages: Messages | None = None
    room: Source = None
    session: Source = None
    viewer: Source = None
    language: Source = None
    intent: Source = "unknown"
    context: dict[Name, Source] = {}
    logged: LoggedFields = msgspec.field(default_factory=LoggedFields)
    gold: GoldFields | None = None
