"""Tables: typed rows with unique keys, made from a source's cells.

Types are read off all values of a column: integer, real, text, and json where the file holds lists or objects. What a
spreadsheet would spoil stays text: `007`, `1E5`, integers beyond 64 bits. An empty CSV cell is null.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from harnessctl.errors import Faults
from harnessctl.manifests.load import Document
from harnessctl.manifests.specs.world import Table
from harnessctl.manifests.violations import did_you_mean, shown
from harnessctl.simulate.cells import has_money, how_to_clean, is_number, is_plain, is_sum
from harnessctl.simulate.sources import Source, limited

ColumnType = Literal["integer", "real", "text", "json"]
Value = str | int | float | None

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,18})", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_REAL = re.compile(_DECIMAL.pattern + r"(?:[eE][+-]?\d+)?", re.ASCII)
_INT64 = range(-(2**63), 2**63)
#: A longer decimal is not kept exactly by a real number, and stays text.
EXACT_DIGITS = 15


@dataclass(slots=True, frozen=True)
class TableData:
    """A table's columns with their types, its key, and its rows in file order."""

    name: str
    columns: list[tuple[str, ColumnType]]
    key: list[str]
    mutable: bool
    rows: list[list[Value]]

    @property
    def names(self) -> list[str]:
        """The column names in order."""
        return [name for name, _ in self.columns]


def make_table(name: str, spec: Table, source: Source, document: Document, faults: Faults) -> TableData | None:
    """The table, or None with a fault for each cell, column or key that does not fit.

    Faults in cells point into the data file, faults in `key` and `types` into the manifest.
    """
    _name_map_key(spec, source)
    if not _columns_differ(source, faults) or not _columns_exist(name, spec, source, document, faults):
        return None
    found = limited(source.path, faults)
    columns: list[tuple[str, ColumnType]] = []
    rows: list[list[Value]] = [[None] * len(source.columns) for _ in source.rows]
    for index, column in enumerate(source.columns):
        cells = [row[index] for row in source.rows]
        kind = spec.types.get(column) or (_written_type(cells) if source.written else _json_type(cells))
        columns.append((column, kind))
        convert = _written if source.written else _plain
        refused: set[int] = set()
        for number, cell in enumerate(cells):
            try:
                rows[number][index] = convert(cell, kind)
            except ValueError:
                refused.add(number)
                number_is_due = kind in ("integer", "real")
                found.add(source.fault("table-type", f"`{column}` is not of type {kind}", number, index, got=shown(cell),
                                       allowed=kind, hint=(number_is_due and how_to_clean(cell, is_text=source.written))
                                       or f"see `tables/{name}/types` in the manifest"))  # fmt: skip
        if column not in spec.types:
            _check_numbers(name, column, index, cells, source, found.add)
        if column in spec.required:
            _check_required(name, spec, column, index, refused, source, rows, found.add)
    table = TableData(name, columns, list(spec.key), spec.mutable, rows)
    _check_keys(table, source, found.add)
    return table if found.close() else None


def _check_numbers(
    name: str, column: str, index: int, cells: list[Any], source: Source, add: Callable[[Any], None]
) -> None:
    """A column without a declared type in which all cells are numbers, and some are not written as such.

    It is one of numbers where half of its cells are plain, or where all are sums and some have a sign or a comma.
    """
    present = [(number, cell) for number, cell in enumerate(cells) if cell not in (None, "")]
    odd = [(number, cell) for number, cell in present if not is_plain(cell)]
    if not odd or not all(is_number(cell) for _, cell in present):
        return
    sums = all(is_sum(cell) for _, cell in present) and any(has_money(cell) or "," in cell for _, cell in odd)
    if not sums and 2 * len(odd) > len(present):
        return
    for number, cell in odd:
        what = "has a currency sign" if has_money(cell) else "is not written as one"
        add(source.fault("table-type", f"`{column}` is a column of numbers, and this one {what}", number, index,
                         got=shown(cell), allowed="a plain number",
                         hint=f"{how_to_clean(cell, is_text=source.written)}; if it is text: `tables/{name}/types: {{{column}: text}}`"))  # fmt: skip


def _check_required(
    name: str, spec: Table, column: str, index: int, refused: set[int], source: Source, rows: list[list[Value]],
    add: Callable[[Any], None],
) -> None:  # fmt: skip
    key = [source.columns.index(part) for part in spec.key]
    for number, row in enumerate(rows):
        if number in refused or (row[index] is not None and str(row[index]).strip()):
            continue
        which = ", ".join(f"{source.columns[at]} {source.rows[number][at]}" for at in key)
        add(source.fault("table-missing", f"`{column}` is empty in the row of {which}", number, index, got="nothing",
                         allowed="a value in every row", hint=f"fill it in, leave the row out, or remove `{column}` from `tables/{name}/required`"))  # fmt: skip


def _name_map_key(spec: Table, source: Source) -> None:
    """The key of a JSON map's entries becomes the table's one key column, unless the objects name it themselves."""
    if "" not in source.columns:
        return
    at = source.columns.index("")
    if len(spec.key) == 1 and spec.key[0] not in source.columns:
        source.columns[at] = spec.key[0]
    else:
        del source.columns[at]
        for row in source.rows:
            del row[at]


def _columns_differ(source: Source, faults: Faults) -> bool:
    """Whether no two columns have one name but for case, as keys of JSON objects may; a header was looked at before."""
    seen: dict[str, str] = {}
    for index, column in enumerate(source.columns):
        other = seen.setdefault(column.lower(), column)
        if other != column:
            row = next((number for number, cells in enumerate(source.rows) if cells[index] is not None), 0)
            faults.add(source.fault("table-header", "two columns have one name", row, index, got=column,
                                    hint=f"the other is `{other}`; SQL knows no case"))  # fmt: skip
            return False
    return True


def _columns_exist(name: str, spec: Table, source: Source, document: Document, faults: Faults) -> bool:
    good = True
    wanted = [(("key", i), column, False) for i, column in enumerate(spec.key)]
    wanted += [(("required", i), column, False) for i, column in enumerate(spec.required)]
    for at, column, is_name in [*wanted, *((("types", c), c, True) for c in spec.types)]:
        if column not in source.columns:
            good = False
            faults.add(document.fault("table-column", f"{source.path} has no column `{column}`", "tables", name, *at,
                                      key=is_name, got=column, allowed=", ".join(source.columns),
                                      hint=did_you_mean(column, source.columns)))  # fmt: skip
    return good


def _written_type(cells: list[str]) -> ColumnType:
    present = [cell for cell in cells if cell]
    if not present:
        return "text"
    if all(_INTEGER.fullmatch(cell) and int(cell) in _INT64 for cell in present):
        return "integer"
    exact = all(_DECIMAL.fullmatch(cell) and len(cell) <= EXACT_DIGITS for cell in present)
    return "real" if exact else "text"


def _json_type(cells: list[Any]) -> ColumnType:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds & {dict, list}:
        return "json"
    if kinds and kinds <= {int, bool} and all(int(cell) in _INT64 for cell in cells if cell is not None):
        return "integer"
    return "real" if kinds and kinds <= {int, float, bool} else "text"


def _written(cell: str, kind: ColumnType) -> Value:
    if cell == "":
        return None
    if kind == "integer":
        if not _INTEGER.fullmatch(cell) or int(cell) not in _INT64:
            raise ValueError(cell)
        return int(cell)
    if kind == "real":
        if not _REAL.fullmatch(cell) or not math.isfinite(float(cell)):
            raise ValueError(cell)
        return float(cell)
    return _compact(json.loads(cell)) if kind == "json" else cell


def _plain(cell: Any, kind: ColumnType) -> Value:
    if cell is None:
        return None
    if kind == "json":
        return _compact(cell)
    if kind == "text":
        return cell if isinstance(cell, str) else _compact(cell)
    if not isinstance(cell, (int, float)) or (kind == "integer" and int(cell) != cell) or (kind == "integer" and int(cell) not in _INT64):  # fmt: skip
        raise ValueError(cell)
    return int(cell) if kind == "integer" else float(cell)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _check_keys(table: TableData, source: Source, add: Callable[[Any], None]) -> None:
    at = [table.names.index(column) for column in table.key]
    seen: dict[tuple[Value, ...], int] = {}
    for number, row in enumerate(table.rows):
        key = tuple(row[index] for index in at)
        shown_key = ", ".join(str(part) for part in key)
        if None in key:
            add(source.fault("table-key", "a row has no key", number, at[key.index(None)],
                             allowed=f"a value in {', '.join(table.key)}"))  # fmt: skip
        elif key in seen:
            first = source.lines[seen[key]]
            place = f"the first is at line {first}" if first else f"the first is at {source.marks[seen[key]]}"
            add(source.fault("table-key", "two rows have one key", number, at[0], got=shown_key,
                             allowed=f"{', '.join(table.key)} once each", hint=place))  # fmt: skip
        seen.setdefault(key, number)


def table_digest_parts(table: TableData) -> list[bytes]:
    """What a table adds to the world's digest: its shape, then each row. The same on any machine."""
    head = {"name": table.name, "columns": table.columns, "key": table.key, "mutable": table.mutable}
    return [orjson.dumps(head, option=orjson.OPT_SORT_KEYS), *(orjson.dumps(row) for row in table.rows)]
