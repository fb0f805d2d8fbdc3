"""Database: a world's tables as one SQLite file that never changes, and the private copies that tools may write to.

What always holds: the file is opened read-only under the name `base`; a private copy holds the mutable tables alone, in
a file of its own that goes when its owner does. SQL names a table without a prefix: SQLite looks into the private copy
first, then into `base`. So a write to a table that is not mutable is an error, and a fresh copy costs under a millisecond.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import msgspec

from harnessctl.errors import StorageError
from harnessctl.manifests.specs.world import Faq
from harnessctl.simulate.answers import Answers
from harnessctl.simulate.faq import index_faq
from harnessctl.simulate.tables import TableData

#: Part of the name under which a built file is kept; raised when the layout of the file changes.
LAYOUT = 1
BUSY_TIMEOUT_S = 5.0
#: Where an SQLite file counts its changes, a big-endian integer of four bytes.
_CHANGES_AT = 24


class Facts(msgspec.Struct, kw_only=True):
    """What is known of a built file without reading its tables. `rows` counts them by table."""

    digest: str
    columns: dict[str, list[tuple[str, str]]]
    mutable: list[str]
    rows: dict[str, int]


def build(path: Path, tables: Sequence[TableData], faq: Faq | None, digest: str) -> Facts:
    """Write the tables, the FAQ indexes and the facts to a new file at `path`, which appears whole or not at all."""
    facts = Facts(
        digest=digest,
        columns={t.name: list(t.columns) for t in tables},
        mutable=[t.name for t in tables if t.mutable],
        rows={t.name: len(t.rows) for t in tables},
    )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(temporary)) as db, db:
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("PRAGMA synchronous = OFF")
            for table in tables:
                _create(db, table)
            for table in tables:
                if faq is not None and table.name == faq.table:
                    index_faq(db, faq, table)
            db.execute("CREATE TABLE _facts (facts TEXT)")
            db.execute("INSERT INTO _facts VALUES (?)", [msgspec.json.encode(facts).decode()])
        os.replace(temporary, path)
    except (OSError, sqlite3.Error) as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise StorageError(f"cannot write {path}: {error}") from error
    return facts


def _create(db: sqlite3.Connection, table: TableData) -> None:
    # UNIQUE and not PRIMARY KEY: the rowids stay 1, 2, 3 in file order, which the FAQ indexes lean on.
    kinds = {"integer": "INTEGER", "real": "REAL", "text": "TEXT", "json": "TEXT"}
    columns = ", ".join(f"{quoted(name)} {kinds[kind]}" for name, kind in table.columns)
    keys = ", ".join(quoted(name) for name in table.key)
    db.execute(f"CREATE TABLE {quoted(table.name)} ({columns}, UNIQUE ({keys}))")
    marks = ", ".join("?" * len(table.columns))
    db.executemany(f"INSERT INTO {quoted(table.name)} VALUES ({marks})", table.rows)


def read_facts(path: Path) -> Facts | None:
    """The facts of a built file; None when there is no such file or it is damaged, so that it is built again."""
    if not path.is_file():
        return None
    try:
        with contextlib.closing(sqlite3.connect(_uri(path), uri=True)) as db:
            (text,) = db.execute("SELECT facts FROM _facts").fetchone()
        return msgspec.json.decode(text, type=Facts)
    except (sqlite3.Error, msgspec.DecodeError, TypeError):
        return None


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


class Database:
    """A built file and the empty private copy that sandboxes begin with. Shared by all sandboxes of a world.

    `folder` is where private copies are made; it is removed when the last user of this object is gone.
    """

    def __init__(self, path: Path, facts: Facts, folder: Path) -> None:
        self.path = path
        self.facts = facts
        self._folder = folder
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.answers = Answers()
        self._count = 0
        self._lock = threading.Lock()
        self._fresh = self._snapshot()

    def _snapshot(self) -> bytes:
        """The bytes of a private copy: the mutable tables as they are in the file."""
        with contextlib.closing(sqlite3.connect(":memory:", uri=True, isolation_level=None)) as db:
            db.execute("ATTACH ? AS base", [_uri(self.path)])
            db.execute("PRAGMA page_size = 4096")
            for name in self.facts.mutable:
                (sql,) = db.execute(
                    "SELECT sql FROM base.sqlite_master WHERE type = 'table' AND name = ?", [name]
                ).fetchone()
                db.execute(sql)
                db.execute(f"INSERT INTO main.{quoted(name)} SELECT * FROM base.{quoted(name)}")
            return db.serialize() if self.facts.mutable else b""

    def private_copy(self) -> Path:
        """A new file with the mutable tables in their first state."""
        with self._lock:
            self._count += 1
            path = self._folder / f"{self._count}.sqlite"
        try:
            path.write_bytes(self._fresh)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error
        return path

    def is_fresh(self, private: IO[bytes]) -> bool:
        """Whether a private copy's file holds what it was made with."""
        try:
            return os.pread(private.fileno(), 4, _CHANGES_AT) == self._fresh[_CHANGES_AT : _CHANGES_AT + 4]
        except OSError:
            return False

    def connect(self, private: Path) -> sqlite3.Connection:
        """A connection in autocommit mode whose rows are sqlite3.Row; any thread may close it."""
        db = sqlite3.connect(
            f"{private.as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_TIMEOUT_S,
        )
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = MEMORY").close()
        db.execute("PRAGMA synchronous = OFF").close()
        db.execute("ATTACH ? AS base", [_uri(self.path)]).close()
        return db


def _uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"


class Copy:
    """One private copy: a file, and a connection for each thread that asks. Gone when closed or forgotten."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._path = database.private_copy()
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        #: The file itself, to look at its header; kept open, since to open it costs as much as a small query.
        self._file: list[IO[bytes]] = []
        # The finalizer holds the database, so that the folder outlives every copy in it.
        self._dispose = weakref.finalize(self, _dispose, database, self._path, self._connections, self._file)

    def connection(self) -> sqlite3.Connection:
        """The calling thread's connection, made at its first call; StorageError once the copy is closed."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if not self._dispose.alive:
            raise StorageError("the world is closed")
        if found is None:
            found = self._local.connection = self._database.connect(self._path)
            self._connections.append(found)
        return found

    def is_untouched(self) -> bool:
        """Whether the copy is as it was made: nothing written, no transaction open, no temporary table on a connection,
        rows of the kind that they were.

        SQLite counts the changes of a file in its header, so that no table need be read.
        """
        if not self._dispose.alive:
            return False
        for connection in self._connections:
            if connection.in_transaction or connection.row_factory is not sqlite3.Row:
                return False
            if connection.execute("SELECT 1 FROM temp.sqlite_master").fetchone():
                return False
        if not self._file:
            try:
                self._file.append(open(self._path, "rb", buffering=0))  # noqa: SIM115 - until it rests or is gone
            except OSError:
                return False
        return self._database.is_fresh(self._file[0])

    def rest(self) -> None:
        """Close every connection and keep the file: what was written is there when a connection is next asked for."""
        self._local = threading.local()
        _close(self._connections, self._file)

    def close(self) -> None:
        """Close every connection and remove the file; closing twice is allowed."""
        self._dispose()


def _dispose(_database: Database, path: Path, connections: list[sqlite3.Connection], file: list[IO[bytes]]) -> None:
    _close(connections, file)
    path.unlink(missing_ok=True)


def _close(connections: list[sqlite3.Connection], file: list[IO[bytes]]) -> None:
    """The file comes last: to close it lets go of every lock that this process has on it."""
    while connections:
        connections.pop().close()
    while file:
        file.pop().close()
