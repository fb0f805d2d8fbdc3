"""Context: the queries by which a world supplies the inputs of a prompt.

What always holds: a query was proven, when the world was opened, to read and nothing else (no write, no other file, no
random number), and the values it is given are bound, never pasted.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import orjson

from harnessctl.errors import Fault, Faults
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.specs.world import ContextQuery, World
from harnessctl.manifests.violations import did_you_mean
from harnessctl.records.comment import CommentInput

_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
#: Their answers differ from run to run, or reach out of the database.
_REFUSED_FUNCTIONS = frozenset(
    {"random", "randomblob", "load_extension", "current_timestamp", "current_date", "current_time", "changes",
     "total_changes", "last_insert_rowid", "sqlite_version", "sqlite_source_id"}
)  # fmt: skip


#: Steps of SQLite's machine that one query may take, some seconds of work: a recursion without an end would never answer.
MAX_STEPS = 100_000_000
_STEPS_A_TICK = 1_000_000
TOO_LONG_HINT = "does a recursive part of it come to an end?"


class QueryTooLongError(sqlite3.OperationalError):
    """A query took more than MAX_STEPS, the same on any machine."""


@contextlib.contextmanager
def bounded(db: sqlite3.Connection) -> Generator[None]:
    """What is asked of `db` within takes MAX_STEPS at most, or is given up with QueryTooLongError."""
    left = MAX_STEPS // _STEPS_A_TICK

    def tick() -> int:
        nonlocal left
        left -= 1
        return left < 0

    db.set_progress_handler(tick, _STEPS_A_TICK)
    try:
        yield
    except sqlite3.OperationalError as error:
        if left < 0:
            raise QueryTooLongError(f"given up after {MAX_STEPS:,} steps") from error
        raise
    finally:
        db.set_progress_handler(None, 0)


class Parameters(dict[str, Any]):
    """Values for `:name` in a query; a name that the request does not have is null."""

    def __missing__(self, name: str) -> None:
        return None


def parameters(request: CommentInput) -> Parameters:
    """What queries may name: the fields of the request's context, and its `room`, `session`, `viewer` and `message`.

    `viewer` is who wrote first, `message` all texts joined by newlines. Lists and objects are bound as JSON text.
    """
    messages = request.viewer_messages()
    values = Parameters({name: _bindable(value) for name, value in request.context.items()})
    given = {
        "room": request.room,
        "session": request.session,
        "viewer": messages[0].viewer,
        "message": "\n".join(message.text for message in messages),
    }
    values.update({name: _bindable(value) for name, value in given.items() if value is not None})
    return values


def _bindable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, float) or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    return orjson.dumps(value, default=str).decode() if not isinstance(value, int) else str(value)


def plain_row(names: Sequence[str], values: Sequence[Any], json_columns: frozenset[str]) -> dict[str, Any]:
    """A row as JSON: columns of type json are decoded by name, a real number without a fraction is shown without one."""
    return {name: _plain(value, name in json_columns) for name, value in zip(names, values, strict=True)}


def _plain(value: Any, is_json: bool) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and is_json:
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:  # a tool wrote something else into the column
            return value
    return value


def run_query(
    db: sqlite3.Connection, query: ContextQuery, values: Mapping[str, Any], json_columns: frozenset[str]
) -> Any:
    """The rows of a query, or its first row or null where it says `one`."""
    assert query.sql is not None
    with bounded(db):
        cursor = db.execute(query.sql, values)
        names = [column[0] for column in cursor.description]
        if query.one:
            row = cursor.fetchone()
            cursor.close()
            return None if row is None else plain_row(names, row, json_columns)
        return [plain_row(names, row, json_columns) for row in cursor]


def check_queries(db: sqlite3.Connection, spec: World, document: Document, faults: Faults) -> None:
    """A fault, at its line of the manifest, for each query that SQLite cannot prepare or that does more than read."""
    for name, query in spec.context.items():
        if (query.sql is None) == (query.search is None):
            faults.add(document.fault("world-context", "one of `sql` and `search` is needed", "context", name, key=True,
                                      got="both" if query.sql else "neither"))  # fmt: skip
        elif query.search is not None:
            _check_search(name, query, spec, document, faults)
        else:
            assert query.sql is not None
            fault = reading_fault(db, query.sql, document, "context", name, "sql")
            fault = fault or _ending_fault(db, query, document, name)
            if fault is not None:
                faults.add(fault)


def _ending_fault(db: sqlite3.Connection, query: ContextQuery, document: Document, name: str) -> Fault | None:
    """The fault of a query that does not come to an end, asked as for a request that has nothing."""
    try:
        run_query(db, query, Parameters(), frozenset())
    except QueryTooLongError as error:
        return document.fault("world-sql", f"the query takes too long: {error}", "context", name, "sql",
                              hint=TOO_LONG_HINT)  # fmt: skip
    except sqlite3.Error:  # without a request's values it may fail
        return None
    return None


def reading_fault(
    db: sqlite3.Connection, sql: str, document: Document, *at: PathPart, code: str = "world-sql"
) -> Fault | None:
    """What keeps the query at a place of a manifest from being one that only reads what is the same each time."""
    refused: list[str] = []

    def authorize(action: int, first: str | None, second: str | None, _db: str | None, _trigger: str | None) -> int:
        function = (second or "").lower()
        if action in _READS or (action == sqlite3.SQLITE_FUNCTION and function not in _REFUSED_FUNCTIONS):
            return sqlite3.SQLITE_OK
        # SQLite declares a table-valued function (json_each) this way; a statement that names this table it refuses.
        if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
            return sqlite3.SQLITE_OK
        refused.append(
            f"the function {function}" if action == sqlite3.SQLITE_FUNCTION else _ACTIONS.get(action, "a change")
        )
        return sqlite3.SQLITE_DENY

    db.set_authorizer(authorize)
    try:
        db.execute(f"EXPLAIN {sql}", Parameters()).close()
    except (sqlite3.Error, sqlite3.Warning) as error:
        return _sql_fault(code, error, refused, document, at)
    finally:
        db.set_authorizer(None)
    return None


_ACTIONS = {
    sqlite3.SQLITE_INSERT: "a write",
    sqlite3.SQLITE_UPDATE: "a write",
    sqlite3.SQLITE_DELETE: "a write",
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
}


def _sql_fault(code: str, error: Exception, refused: list[str], document: Document, at: tuple[PathPart, ...]) -> Fault:
    if refused:
        return document.fault(code, "the query may only read what is the same each time", *at,
                              got=refused[0], allowed="SELECT")  # fmt: skip
    text = str(error)
    hint = ""
    if "Binding" in text or "binding" in text:
        text, hint = "values are bound by name", "write `:room`, not `?`"
    elif "one statement" in text:
        hint = "write one SELECT without a semicolon inside"
    return document.fault(code, f"SQLite cannot read the query: {text}", *at, hint=hint)


def _check_search(name: str, query: ContextQuery, spec: World, document: Document, faults: Faults) -> None:
    if query.search != "faq":
        faults.add(document.fault("world-context", "what is searched is not known", "context", name, "search",
                                  got=str(query.search), allowed="faq"))  # fmt: skip
    elif spec.faq is None:
        faults.add(document.fault("world-context", "the world has no `faq` to search", "context", name, "search",
                                  hint="name the table under `faq:`"))  # fmt: skip
    else:
        for column in query.where:
            if column not in spec.faq.filter:
                faults.add(document.fault("world-context", f"the FAQ has no filter `{column}`", "context", name, "where",
                                          column, key=True, got=column, allowed=", ".join(spec.faq.filter) or "none",
                                          hint=did_you_mean(column, spec.faq.filter)))  # fmt: skip
