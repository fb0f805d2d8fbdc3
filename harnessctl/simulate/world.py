"""World: the tables behind a harness's tools and context, opened from its manifest.

What always holds: the digest is over the typed content of the tables and what is read from them, so it is the same on
any machine and unlike for a changed cell; what tools write stays in this world (or in one sandbox of it) and is gone
when it is closed.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import orjson

from harnessctl.errors import Faults, UsageError
from harnessctl.manifests.load import Document, load_yaml
from harnessctl.manifests.locate import find_root, inside
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs.world import World
from harnessctl.manifests.violations import did_you_mean
from harnessctl.records.comment import CommentInput
from harnessctl.simulate.context import bounded, check_queries, parameters, plain_row, run_query
from harnessctl.simulate.database import LAYOUT, Copy, Database, Facts, build, read_facts
from harnessctl.simulate.faq import FaqSearch
from harnessctl.simulate.sources import read_source
from harnessctl.simulate.tables import TableData, make_table, table_digest_parts
from harnessctl.storage import digest_bytes, read_bytes

#: How no table's name may begin.
RESERVED = "sqlite_"
#: What a query may name of a request; a name within a text of the query does no harm.
_PARAMETER = re.compile(r":([A-Za-z_]\w*)")


class LiveWorld:
    """An open world: runtime.protocols.World. Safe to use from several threads, each with a connection of its own.

    `sandbox()` gives a world with the same content and nothing that was written here; it is made in under a millisecond.
    `manifest` is the file that it was opened from, `root` the project's folder.
    """

    def __init__(self, spec: World, database: Database, manifest: Path, root: Path) -> None:
        self.spec = spec
        self.manifest = manifest
        self.root = root
        self.digest = database.facts.digest
        self._database = database
        self._copy = Copy(database)
        self._is_untouched = True
        self._parameters = {name: _PARAMETER.findall(query.sql or "") for name, query in spec.context.items()}
        columns = database.facts.columns
        self._json = frozenset(name for table in columns.values() for name, kind in table if kind == "json")
        faq = spec.faq
        self._faq_columns = [name for name, _ in columns[faq.table]] if faq else []
        self._search = FaqSearch(faq, self._faq_columns) if faq else None

    @property
    def name(self) -> str:
        """The world's name in its manifest."""
        return self.spec.name

    @property
    def rows(self) -> dict[str, int]:
        """How many rows each table had before any change."""
        return dict(self._database.facts.rows)

    @property
    def columns(self) -> dict[str, list[str]]:
        """The columns of each table, in order."""
        return {table: [name for name, _ in columns] for table, columns in self._database.facts.columns.items()}

    def read(self, sql: str, *, most: int | None = None) -> tuple[list[str], list[dict[str, Any]]]:
        """The columns and the first `most` rows of a query without values to bind; it has been proven to read only.

        sqlite3.Error when it cannot be run, or takes too long.
        """
        db = self.connection()
        with bounded(db):
            cursor = db.execute(sql)
            names = [column[0] for column in cursor.description]
            rows = [plain_row(names, row, self._json) for row in itertools.islice(cursor, most)]
            cursor.close()
        return names, rows

    @property
    def size_bytes(self) -> int:
        """The size of the database file that all sandboxes share."""
        return self._database.path.stat().st_size

    def context(self, request: CommentInput, names: Collection[str] | None = None) -> dict[str, Any]:
        """The inputs named under `context:` (of `names` only, where given), for this request and as the mutable tables
        are now."""
        db = self._copy.connection()
        values = parameters(request)
        out: dict[str, Any] = {}
        for name, query in self.spec.context.items():
            if names is not None and name not in names:
                continue
            if query.sql is not None and self._is_untouched:
                asked = (name, *[values[parameter] for parameter in self._parameters[name]])
                out[name] = self._database.answers.get(asked, partial(run_query, db, query, values, self._json))
            elif query.sql is not None:
                out[name] = run_query(db, query, values, self._json)
            else:
                where = {column: values[field] for column, field in query.where.items()}
                out[name] = self.search_faq(values["message"] or "", where=where, top_k=query.top_k)
        return out

    def connection(self) -> sqlite3.Connection:
        """The calling thread's connection; its rows are sqlite3.Row. Only mutable tables can be written to."""
        self._is_untouched = False  # from now on anybody may write
        return self._copy.connection()

    def search_faq(self, query: str, *, where: Mapping[str, Any], top_k: int) -> list[dict[str, Any]]:
        """The best answers, best first: the FAQ row without empty cells, and its `score`.

        ToolError when the FAQ cannot be narrowed that way; UsageError in a world without a FAQ.
        """
        if self._search is None:
            raise UsageError(f"the world {self.name} has no FAQ", hint="name a table under `faq:` in its manifest")
        # Nobody can write to a table that is searched.
        asked = ("faq", query, repr(sorted(where.items())), top_k)
        return self._database.answers.get(asked, partial(self._found, self._search, query, where, top_k))

    def _found(self, search: FaqSearch, query: str, where: Mapping[str, Any], top_k: int) -> list[dict[str, Any]]:
        found = search(self._copy.connection(), query, where, top_k)
        rows = [(plain_row(self._faq_columns, row, self._json), score) for row, score in found]
        return [{k: v for k, v in row.items() if v is not None} | {"score": round(score, 2)} for row, score in rows]

    def sandbox(self) -> LiveWorld:
        """A private copy in the first state."""
        return LiveWorld(self.spec, self._database, self.manifest, self.root)

    def renew(self) -> None:
        """Go back to the first state, as a new sandbox has it; costs next to nothing where nothing was written."""
        if not self._copy.is_untouched():
            self._copy.close()
            self._copy = Copy(self._database)
        self._is_untouched = True

    def rest(self) -> None:
        """Release connections until the next use; what was written stays. A world at rest takes only its file."""
        self._copy.rest()

    def close(self) -> None:
        """Release connections and the private copy; sandboxes are worlds of their own and stay open."""
        self._copy.close()

    def __enter__(self) -> LiveWorld:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_world(manifest: Path, *, cache: Path | None = None) -> LiveWorld:
    """The world that a manifest (kind World) describes.

    With `cache` (the project's build/worlds) the database is kept there under the digest of its sources and opened
    again while they are unchanged; without, and where that folder cannot be written, it lives in a temporary folder. FaultsError holds everything that is wrong
    in the manifest, the data files and the queries; StorageError says that a file could not be read or written.
    """
    manifest = manifest.absolute()
    try:
        root = find_root(start=manifest.parent)
    except UsageError:
        root = manifest.parent
    faults = Faults()
    data = read_bytes(manifest)
    document = load_yaml(_shown(manifest, root), data, faults)
    spec = convert(document, "World", World, faults) if document is not None else None
    if document is None or spec is None:
        faults.raise_if_errors()
        raise AssertionError("a manifest that cannot be read has a fault")
    paths = _data_files(spec, manifest, root, document, faults)
    faults.raise_if_errors()
    folder = Path(tempfile.mkdtemp(prefix="harnessctl-world-"))
    sources = _sources_digest(data, paths)
    name = f"{sources[:16]}.sqlite"
    path = (cache or folder) / name
    facts = read_facts(path) if cache else None
    try:
        if facts is None and cache is not None and not _can_write(cache):
            path = folder / name
        facts = facts or _build(path, spec, paths, root, document, faults)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    world = LiveWorld(spec, Database(path, facts, folder), manifest, root)
    check_queries(world.connection(), spec, document, faults)
    if faults.errors:
        world.close()
    faults.raise_if_errors()
    return world


def _can_write(folder: Path) -> bool:
    """Whether a file can be made in `folder`, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _data_files(spec: World, manifest: Path, root: Path, document: Document, faults: Faults) -> dict[str, Path]:
    """The file of each table; a fault for one that is missing or lies outside the project."""
    paths: dict[str, Path] = {}
    for name, table in spec.tables.items():
        path = manifest.parent / table.file
        at = ("tables", name, "file")
        if name.startswith(RESERVED):
            faults.add(document.fault("world-table", f"SQLite keeps names that begin with `{RESERVED}` for itself", "tables",
                                      name, key=True, got=name, allowed="another name"))  # fmt: skip
        if not inside(root.resolve(), path):
            faults.add(document.fault("source-outside", "a table's file lies outside the project", *at, got=table.file,
                                      hint="copy it beside the manifest"))  # fmt: skip
        elif not path.is_file():
            beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            faults.add(document.fault("world-file", "a table's file is not there", *at, got=table.file,
                                      hint=did_you_mean(path.name, beside)))  # fmt: skip
        else:
            paths[name] = path
    return paths


def _sources_digest(manifest: bytes, paths: dict[str, Path]) -> str:
    """What a built file is kept under: everything it was made from, and how."""
    parts = [f"{LAYOUT}/{sqlite3.sqlite_version}", digest_bytes(manifest)]
    parts += [f"{name} {digest_bytes(read_bytes(path))}" for name, path in paths.items()]
    return digest_bytes("\n".join(parts).encode())


def _build(path: Path, spec: World, paths: dict[str, Path], root: Path, document: Document, faults: Faults) -> Facts:
    tables: list[TableData] = []
    for name, table in spec.tables.items():
        source = read_source(paths[name], _shown(paths[name], root), table.path, faults)
        made = make_table(name, table, source, document, faults) if source is not None else None
        if made is not None:
            tables.append(made)
    _check_faq(spec, tables, document, faults)
    faults.raise_if_errors()
    return build(path, tables, spec.faq, _content_digest(spec, tables))


def _content_digest(spec: World, tables: list[TableData]) -> str:
    whole = hashlib.sha256(orjson.dumps([msgspec.to_builtins(spec.faq), msgspec.to_builtins(spec.context)]))
    for table in sorted(tables, key=lambda t: t.name):
        for part in table_digest_parts(table):
            whole.update(b"\n" + part)
    return whole.hexdigest()


def _check_faq(spec: World, tables: list[TableData], document: Document, faults: Faults) -> None:
    faq = spec.faq
    if faq is None:
        return
    if faq.table not in spec.tables:
        faults.add(document.fault("world-table", "the FAQ names a table that there is not", "faq", "table", got=faq.table,
                                  allowed=", ".join(spec.tables), hint=did_you_mean(faq.table, spec.tables)))  # fmt: skip
    elif spec.tables[faq.table].mutable:
        faults.add(document.fault("world-faq", "a table that is searched cannot be mutable", "faq", "table", got=faq.table,
                                  hint="its index is made once; remove `mutable`"))  # fmt: skip
    for table in (t for t in tables if t.name == faq.table):
        wanted: list[tuple[tuple[Any, ...], str]] = [(("question",), faq.question), (("answer",), faq.answer)]
        wanted += [(("filter", i), column) for i, column in enumerate(faq.filter)]
        for at, column in wanted:
            if column not in table.names:
                faults.add(document.fault("table-column", f"the table {faq.table} has no column `{column}`", "faq", *at,
                                          got=column, allowed=", ".join(table.names),
                                          hint=did_you_mean(column, table.names)))  # fmt: skip
