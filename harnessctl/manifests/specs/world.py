"""World: the tables behind the tools, the context of a request, and how a simulation draws requests and faults."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl.manifests.specs.base import ApiVersion, Name, Slug, Spec, Version


class Table(Spec, kw_only=True):
    """Rows from a CSV, JSON Lines or nested JSON file, beside the manifest. `key` columns identify a row.

    Column types are integer, real or text, inferred from all values unless `types` says otherwise.
    """

    file: str
    key: Annotated[list[str], Meta(min_length=1)]
    types: dict[str, Literal["integer", "real", "text", "json"]] = {}
    required: Annotated[list[str], Meta(description="columns in which no cell may be empty")] = []
    mutable: bool = False
    path: Annotated[str | None, Meta(description="JSON Pointer of the map or list inside a nested JSON file")] = None


class Faq(Spec, kw_only=True):
    """A table searched by full text (SQLite FTS5, trigram, so that Chinese needs no segmenter)."""

    table: str
    question: str = "question"
    answer: str = "answer"
    filter: Annotated[list[str], Meta(description="columns that a search may narrow by")] = []


class ContextQuery(Spec, kw_only=True):
    """One input of the prompt: `sql` (read only; `:name` is a field of the request's context) or a FAQ search."""

    sql: str | None = None
    one: Annotated[bool, Meta(description="the first row as an object, or null, instead of a list")] = False
    search: Annotated[str | None, Meta(description="`faq`: the question is the viewer's text")] = None
    where: Annotated[
        dict[str, str], Meta(description="search only: filter column to a field of the request's context")
    ] = {}
    top_k: Annotated[int, Meta(ge=1, le=50)] = 3


Rate = Annotated[float, Meta(ge=0, le=1)]


class FaultRates(Spec, kw_only=True):
    """The share of tool calls that each fault is put in the place of [3.3]; together at most 1.

    `persist` is the share of faults that come again when the same call is made again in the request.
    """

    timeout: Rate = 0.0
    malformed: Rate = 0.0
    denied: Rate = 0.0
    stale: Rate = 0.0
    persist: Rate = 0.0


class Chatter(Spec, kw_only=True):
    """What surrounds a message: earlier talk (pairs of viewer and host), and other viewers' comments, by language.

    `viewers` is a query for who writes (`viewer`, and `language` or null), `actions` one for what they may do: a row is
    an entry of the input `actions`, but for its column `room`, which says where it belongs.
    """

    history: dict[str, list[Annotated[list[str], Meta(min_length=2, max_length=2)]]] = {}
    comments: dict[str, list[str]] = {}
    viewers: str | None = None
    actions: str | None = None


class Simulation(Spec, kw_only=True):
    """How scenarios are drawn. `mix` gives each intent's share; shares are divided by their sum.

    `history`, `actions`, `several` and `mixed` are the shares of requests with earlier talk, with viewer actions, with
    other viewers' comments around the one that counts, and with two intents.
    """

    mix: Annotated[dict[str, Annotated[float, Meta(ge=0)]], Meta(min_length=1)]
    families: Annotated[list[str], Meta(min_length=1, description="files of kind Families, beside the manifest")]
    history: Rate = 0.0
    actions: Rate = 0.0
    several: Rate = 0.0
    mixed: Rate = 0.0
    chatter: Chatter = msgspec.field(default_factory=Chatter)
    faults: FaultRates = msgspec.field(default_factory=FaultRates)
    user: Annotated[
        Literal["script", "llm"], Meta(description="llm: messages are reworded by an endpoint, behind a cache")
    ] = "script"


class World(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """`manifests/worlds/<name>.yaml`."""

    api_version: ApiVersion
    kind: Literal["World"]
    name: Slug
    version: Version
    tables: dict[Name, Table]
    faq: Faq | None = None
    context: dict[Name, ContextQuery] = {}
    simulation: Simulation | None = None
