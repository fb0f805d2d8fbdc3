"""Families: message families of a world, with the gold of one harness; scenarios are drawn from them [3.3].

Texts hold slots: `{name}` stands for a column of the row that `draw` gave. A value that is exactly one slot keeps the
column's type; `{{` and `}}` are braces.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl.manifests.specs.base import ApiVersion, Slug, Spec

Language = Annotated[str, Meta(pattern=r"^[a-z]{2}(-[A-Za-z]+)?$(?!\n)", description="en, zh, ...")]
Wordings = Annotated[dict[Language, Annotated[list[str], Meta(min_length=1)]], Meta(min_length=1)]


class GoldCall(Spec, kw_only=True):
    """A call in canonical names. `compare` lists the arguments that must be equal; null means all that are given."""

    tool: str
    arguments: dict[str, Any] = {}
    compare: list[str] | None = None


class Fact(Spec, kw_only=True):
    """Something that the reply must say: one of `any`. `source` is the tool that tells it; without it the context does."""

    any: Annotated[list[str], Meta(min_length=1)]
    source: str | None = None


class EndState(Spec, kw_only=True):
    """Rows of a table that must be there after the request (`absent`: must not), with these values."""

    table: str
    where: dict[str, Any]
    values: dict[str, Any] = {}
    absent: bool = False


class Gold(Spec, kw_only=True):
    """What a right answer does.

    `skills` are loaded, `strategies` may be besides. `calls` are made; `optional` ones may be; each list of
    `alternatives` may stand in the place of `calls`. `replies` are right replies, and `fallbacks` what is said when a
    tool failed for good; the oracle says them. `claims` must not be said. `stop` is how the request ends.
    """

    skills: list[str] = []
    strategies: list[str] = []
    calls: list[GoldCall] = []
    optional: list[GoldCall] = []
    alternatives: list[list[GoldCall]] = []
    facts: list[Fact] = []
    claims: list[str] = []
    route: Literal["public", "private", "silent"] = "public"
    stop: Literal["replied", "refused", "silent", "hook_blocked"] = "replied"
    end_state: list[EndState] = []
    replies: dict[Language, list[str]] = {}
    fallbacks: dict[Language, list[str]] = {}


class Family(Spec, kw_only=True):
    """Messages that ask for one thing. `draw` is a query that gives one row for each way of asking it.

    Columns of the row that mean something by themselves: `room`, `viewer`, `language`; all are slots. `context` is laid
    into the request's context (a value that is one slot keeps its type).
    """

    id: Slug
    intent: Slug
    draw: str
    messages: Wordings
    weight: Annotated[float, Meta(gt=0)] = 1.0
    context: dict[str, Any] = {}
    combine: Annotated[bool, Meta(description="may be one half of a mixed-intent request")] = False
    gold: Gold = msgspec.field(default_factory=Gold)


class Families(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """A file of families, named under `simulation.families` of a world."""

    api_version: ApiVersion
    kind: Literal["Families"]
    harness: Annotated[Slug, Meta(description="the harness whose skills and tools the gold names")]
    families: Annotated[list[Family], Meta(min_length=1)]
