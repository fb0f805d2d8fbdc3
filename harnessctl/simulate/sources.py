"""Sources: the files behind a world's tables, read into cells with the place of each.

CSV is RFC 4180 (comma, double quotes, first record is the header), JSON Lines has an object a line, nested JSON a list
of objects or a map of them at a JSON Pointer. All are UTF-8; a byte-order mark is tolerated, since spreadsheets write it.
What always holds: every row has as many cells as there are columns, and whatever was dropped is a fault.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harnessctl.errors import Fault, Faults

#: Faults of one file beyond this many are counted, not listed.
MAX_LISTED = 20

Row = dict[str, Any]


@dataclass(slots=True)
class Source:
    """Cells in file order. `written` cells are text as a CSV has it ("" is no value); others are JSON values.

    `lines` is the line that each row begins at (0: not known), `marks` names each row where there is no line.
    """

    path: str
    columns: list[str]
    rows: list[list[Any]]
    written: bool
    lines: list[int]
    marks: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def fault(self, code: str, message: str, row: int, column: int, *, got: str = "", allowed: str = "", hint: str = "") -> Fault:  # fmt: skip
        """A fault at one cell, as exactly as the kind of file allows."""
        line, col = self.lines[row], 1
        if self.text:
            line, col = _cell_place(self.text, line, column)
        elif self.marks:
            message += f" at {self.marks[row]}"
        return Fault(self.path, line, col if line else 0, code, message, got, allowed, hint)


class _Limited:
    """Faults of one file: the first MAX_LISTED as they are, then one line that counts the rest."""

    def __init__(self, path: str, faults: Faults) -> None:
        self._path = path
        self._faults = faults
        self._count = 0

    def add(self, fault: Fault) -> None:
        """Keep or count one fault."""
        self._count += 1
        if self._count <= MAX_LISTED:
            self._faults.add(fault)

    def close(self) -> bool:
        """Say how many were left out; true when there was none at all."""
        if self._count > MAX_LISTED:
            left = self._count - MAX_LISTED
            self._faults.add(Fault(self._path, 0, 0, "table-more", f"{left} more faults in this file"))
        return self._count == 0


def limited(path: str, faults: Faults) -> _Limited:
    """A collector for the faults of one data file, which may have one a row."""
    return _Limited(path, faults)


def read_source(path: Path, shown: str, pointer: str | None, faults: Faults) -> Source | None:
    """The rows of a .csv, .jsonl or .json file; None after a fault. `shown` is how faults name the file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        faults.add(Fault(shown, 0, 0, "table-file", f"the file cannot be read: {error.strerror}"))
        return None
    text = _decode(shown, data, faults)
    if text is None:
        return None
    if not text.strip():
        faults.add(Fault(shown, 1, 1, "table-empty", "the file is empty", allowed="a header and rows"))
        return None
    ending = path.suffix.lower()
    if ending == ".csv":
        return _read_csv(shown, text, faults)
    if ending in (".jsonl", ".ndjson"):
        return _read_json_lines(shown, text, faults)
    if ending == ".json":
        return _read_json(shown, text, pointer or "", faults)
    faults.add(Fault(shown, 0, 0, "table-file", "the kind of file is not known", ending or "no ending",
                     ".csv, .jsonl, .json", "export the table as CSV"))  # fmt: skip
    return None


def _decode(shown: str, data: bytes, faults: Faults) -> str | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        col = error.start - data.rfind(b"\n", 0, error.start)
        faults.add(Fault(shown, line, col, "table-encoding", "the file is not UTF-8 text", f"byte 0x{data[error.start]:02x}",
                         "UTF-8", f"save it as UTF-8{_encoding_hint(data)}"))  # fmt: skip
        return None
    if "\x00" in text:
        at = text.index("\x00")
        faults.add(Fault(shown, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at), "table-encoding",
                         "the file has NUL characters", "U+0000", "UTF-8 text", "it may be UTF-16; save it as UTF-8"))  # fmt: skip
        return None
    return text


def _encoding_hint(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "; it is UTF-16"
    try:
        data.decode("gb18030")
    except UnicodeDecodeError:
        return ""
    return "; it may be GBK (`iconv -f GB18030 -t UTF-8`)"


def _read_csv(shown: str, text: str, faults: Faults) -> Source | None:
    lines = list(io.StringIO(text, newline=""))
    reader = csv.reader(lines, strict=True)
    found = limited(shown, faults)
    source = Source(shown, [], [], True, [], text=lines)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            found.add(Fault(shown, line, 1, "table-csv", f"the row cannot be read: {error}",
                            hint='a quote inside a quoted cell is doubled ("")'))  # fmt: skip
            break
        if not cells:
            continue
        if not source.columns:
            if not _take_header(source, cells, line, found):
                break
        elif len(cells) != len(source.columns):
            extra = len(cells) > len(source.columns)
            at = _cell_place(lines, line, len(source.columns) if extra else 0)
            found.add(Fault(shown, *at, "table-ragged", "the row and the header differ in length", f"{len(cells)} cells",
                            f"{len(source.columns)}", "quote a cell that holds a comma" if extra else ""))  # fmt: skip
        else:
            source.rows.append(cells)
            source.lines.append(line)
    return source if found.close() else None


def _take_header(source: Source, cells: list[str], line: int, found: _Limited) -> bool:
    seen: dict[str, int] = {}
    good = True
    for index, raw in enumerate(cells):
        name = raw.strip()
        at = _cell_place(source.text, line, index)
        if not name:
            found.add(Fault(source.path, *at, "table-header", "a column has no name", hint="name it or remove it"))
            good = False
        elif name.lower() in seen:
            found.add(Fault(source.path, *at, "table-header", "two columns have one name", name,
                            hint=f"the other is column {seen[name.lower()] + 1}; SQL knows no case"))  # fmt: skip
            good = False
        seen.setdefault(name.lower(), index)
        source.columns.append(name)
    other = next((mark for mark in (";", "\t") if len(cells) == 1 and mark in cells[0]), None)
    if other:
        found.add(Fault(source.path, line, 1, "table-header", "the cells are not separated by commas", repr(other), ",",
                        "export it with commas"))  # fmt: skip
        good = False
    return good


def _cell_place(lines: list[str], line: int, column: int) -> tuple[int, int]:
    """Line and column (1-based) where cell `column` begins, in the record that begins at `line`."""
    at, place, quoted = 0, (line, 1), False
    for number in range(line, len(lines) + 1):
        for index, char in enumerate(lines[number - 1], 1):
            if at == column:
                return place
            if char == '"':
                quoted = not quoted
            elif char == "," and not quoted:
                at += 1
                place = (number, index + 1)
        if not quoted:
            break
    return place


_ESCAPED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Twice(ValueError):
    """An object has one key twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> Row:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return out


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _loads(text: str) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_pairs, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("values are nested too deeply") from None
    if _ESCAPED.search(text):
        _check_escaped(value)
    return value


def _check_escaped(value: Any) -> None:
    """ValueError for characters that only an escape can write, and that are no text: U+0000 and half of a pair."""
    written = json.dumps(value, ensure_ascii=False)
    half = _SURROGATE.search(written)
    if half is not None:
        raise ValueError(f"half of a surrogate pair, U+{ord(half[0]):04X}")
    if "\\u0000" in written.replace("\\\\", ""):
        raise ValueError("a text holds U+0000")


def _json_fault(shown: str, error: ValueError, line: int) -> Fault:
    """The fault for what `_loads` raised on a text that begins at `line` of the file (0: the text is the whole file)."""
    if isinstance(error, _Twice):
        return Fault(shown, line, 1 if line else 0, "table-json", "an object has one key twice", str(error))
    if isinstance(error, json.JSONDecodeError):
        return Fault(
            shown, (line - 1 if line else 0) + error.lineno, error.colno, "table-json", f"not JSON: {error.msg}"
        )
    return Fault(shown, line, 1 if line else 0, "table-json", f"not JSON: {error}")


def _read_json_lines(shown: str, text: str, faults: Faults) -> Source | None:
    found = limited(shown, faults)
    objects: list[tuple[int, str, Row]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = _loads(line)
        except ValueError as error:
            found.add(_json_fault(shown, error, number))
            continue
        if isinstance(value, dict):
            objects.append((number, "", value))
        else:
            found.add(Fault(shown, number, 1, "table-json", "a line is not an object", line.strip()[:60], "{...}"))
    return _from_objects(shown, objects) if found.close() else None


def _read_json(shown: str, text: str, pointer: str, faults: Faults) -> Source | None:
    try:
        value = _loads(text)
    except ValueError as error:
        faults.add(_json_fault(shown, error, 0))
        return None
    where = pointer or "the top"
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            known = ", ".join(list(value)[:20]) if isinstance(value, dict) else type(value).__name__
            faults.add(Fault(shown, 0, 0, "table-json", f"nothing at {pointer}", step, known))
            return None
    if not isinstance(value, (dict, list)) or not value:
        faults.add(
            Fault(shown, 0, 0, "table-empty", f"no rows at {where}", allowed="a list of objects or a map of them")
        )
        return None
    items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    objects: list[tuple[int, str, Row]] = []
    found = limited(shown, faults)
    for key, item in items:
        mark = f"{pointer}/{key}"
        if isinstance(item, dict):
            objects.append((0, mark, {"": key, **item} if isinstance(value, dict) else item))
        else:
            found.add(Fault(shown, 0, 0, "table-json", f"a row is not an object at {mark}", str(item)[:60], "{...}"))
    return _from_objects(shown, objects) if found.close() else None


def _from_objects(shown: str, objects: list[tuple[int, str, Row]]) -> Source:
    """Objects as rows; the columns are all their keys in the order first met. "" is the key of a map's entry."""
    columns = list(dict.fromkeys(name for _, _, item in objects for name in item))
    marks = [mark for _, mark, _ in objects]
    return Source(
        shown,
        columns,
        [[item.get(name) for name in columns] for _, _, item in objects],
        False,
        [line for line, _, _ in objects],
        marks if any(marks) else [],
    )
