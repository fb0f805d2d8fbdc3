"""World: the tables behind the tools and the context of a request. Scenarios and faults join it with the simulator."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from harnessctl.manifests.specs.base import ApiVersion, Name, Slug, Spec, Version


class Table(Spec, kw_only=True):
    """Rows from a CSV, JSON Lines or nested JSON file, beside the manifest. `key` columns identify a row.

    Column types are integer, real or text, inferred from all values unless `types` says otherwise.
    """

    file: str
    key: Annotated[list[str], Meta(min_length=1)]
    types: dict[str, Literal["integer", "real", "text", "json"]] = {}
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


class World(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """`manifests/worlds/<name>.yaml`."""

    api_version: ApiVersion
    kind: Literal["World"]
    name: Slug
    version: Version
    tables: dict[Name, Table]
    faq: Faq | None = None
    context: dict[Name, ContextQuery] = {}
