"""Worlds: the tables that a harness reads, checked as far as names and files go."""

from __future__ import annotations

import posixpath
from typing import Any

from harnessctl.compile.scope import Scope, listed
from harnessctl.compile.sources import header
from harnessctl.compile.unit import Bound
from harnessctl.errors import Faults
from harnessctl.manifests.load import Document
from harnessctl.manifests.locate import SourceFile, look
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs.world import World


def read(file: SourceFile, data: bytes, faults: Faults) -> Document | None:
    """The manifest in the bytes, when it is a world."""
    document = header(file, data, "World", World, (), faults)
    if document is None:
        return None
    name = document.get("name")
    if isinstance(name, str) and name != file.name:
        faults.add(
            document.fault(
                "world-name",
                "the world's name is not its file's",
                "name",
                got=name,
                allowed=file.name,
                hint=f"write name: {file.name}, or rename the file",
            )
        )
    return document


def outline(file: SourceFile, parsed: Document) -> dict[str, Any]:
    """Whether it has a FAQ, the columns that a search may narrow by, and its place."""
    faq = parsed.get("faq")
    filters = faq.get("filter") if isinstance(faq, dict) else None
    return {
        "faq": faq is not None,
        "filters": [name for name in filters if isinstance(name, str)] if isinstance(filters, list) else [],
        "place": [file.path, *parsed.place("name")],
    }


def bind(file: SourceFile, parsed: Document, scope: Scope, faults: Faults) -> Bound:
    """Checks only: a bundle holds no world. The tables' files are beside the manifest."""
    bound = Bound()
    before = len(faults.items)
    world = convert(parsed, "World", World, faults)
    if world is None:
        # Reading has reported what does not fit the schema.
        del faults.items[before:]
        return bound
    for name, table in world.tables.items():
        path = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), table.file))
        kind = look(scope.root, path)
        if kind == "outside":
            faults.add(
                parsed.fault(
                    "source-outside",
                    "a table's file lies outside the project",
                    "tables",
                    name,
                    "file",
                    got=table.file,
                    allowed="a path inside the project",
                )
            )
        elif kind == "file":
            bound.depends[path] = ""
        else:
            faults.add(
                parsed.fault(
                    "world-file",
                    "a table's file is not there",
                    "tables",
                    name,
                    "file",
                    got=table.file,
                    allowed=f"a file beside {file.path}",
                )
            )
    if world.faq is not None and world.faq.table not in world.tables:
        faults.add(
            parsed.fault(
                "world-table",
                "the FAQ names a table that there is not",
                "faq",
                "table",
                got=world.faq.table,
                allowed=listed(world.tables),
                hint=scope.near(world.faq.table, world.tables),
            )
        )
    for name, query in world.context.items():
        if (query.sql is None) == (query.search is None):
            faults.add(
                parsed.fault(
                    "world-context",
                    f"`{name}` is asked for in exactly one way",
                    "context",
                    name,
                    key=True,
                    allowed="sql or search",
                )
            )
        if query.search is not None and (query.search != "faq" or world.faq is None):
            faults.add(
                parsed.fault(
                    "world-context",
                    "there is nothing of this name to search in",
                    "context",
                    name,
                    "search",
                    got=query.search,
                    allowed="faq" if world.faq is not None else "nothing: no faq",
                )
            )
    return bound
