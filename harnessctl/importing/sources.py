"""Sources: the files of somebody else's folder, read as data and never followed out of it.

What always holds: symbolic links are not followed; text is UTF-8 with LF line ends once it is here, and what had to be
changed for that is a note.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harnessctl.errors import Faults, StorageError, UsageError
from harnessctl.importing.report import Entry
from harnessctl.manifests.encoding import MAX_SOURCE_BYTES, line_and_column
from harnessctl.manifests.load import Document, load_text
from harnessctl.storage import read_bytes

MAX_FILES = 20_000
MAX_DEPTH = 50
_SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv"})
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_BIDI = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")


def walk(source: Path) -> Iterator[Path]:
    """The files of `source` (itself, when it is a file) in order of path; links to folders are not entered.

    UsageError when there is nothing at `source`, or more than MAX_FILES files; StorageError for a folder that cannot be
    read.
    """
    if source.is_file():
        yield source
        return
    if not source.is_dir():
        raise UsageError(f"nothing to import at {source}", hint="give a file or a folder")
    count = 0
    for folder, folders, files in os.walk(source, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        for name in sorted(files):
            count += 1
            if count > MAX_FILES:
                raise UsageError(
                    f"{source} holds more than {MAX_FILES} files", hint="give the folder that holds what to import"
                )
            yield Path(folder) / name


def _unreadable(error: OSError) -> None:
    raise StorageError(f"cannot read {error.filename}: {error.strerror}")


def shown(path: Path, source: Path) -> str:
    """How the report names a file: from the source folder, or by its name when the source is that file."""
    return path.name if path == source else path.relative_to(source).as_posix()


def read_text(path: Path, entry: Entry) -> str | None:
    """The text of a file, or None with the entry refused: a link, too large, or not UTF-8."""
    if path.is_symlink():
        entry.refuse("it is a symbolic link, which is not followed")
        return None
    if not path.is_file():
        entry.refuse("it is a pipe, a socket or a device, which is not read")
        return None
    data = read_bytes(path)
    if len(data) > MAX_SOURCE_BYTES:
        entry.refuse(f"it is too large: {len(data)} bytes; allowed {MAX_SOURCE_BYTES}")
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        entry.refuse(f"line {line} is not UTF-8 text: byte 0x{data[error.start]:02x}")
        return None
    if text.startswith("\ufeff"):
        text = text[1:]
        entry.note("changed", 1, "the byte-order mark was taken off")
    if "\r" in text:
        count = text.count("\r")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        entry.note("changed", 0, f"{count} Windows line ends were made LF")
    if found := _CONTROL.findall(text):
        line, _ = line_and_column(text, text.index(found[0]))
        text = _CONTROL.sub("", text)
        entry.note("changed", line, f"{len(found)} control characters were taken out, the first U+{ord(found[0]):04X}")
    if bidi := _BIDI.search(text):
        line, _ = line_and_column(text, bidi.start())
        entry.note(
            "warning", line, f"U+{ord(bidi[0]):04X} turns the direction of writing and can hide text from a reader"
        )
    return text


class JsonSource:
    """A JSON file: its value, and the line of any part of it (0 where that is not known)."""

    def __init__(self, path: str, text: str, value: Any) -> None:
        self.value = value
        self._path = path
        self._text = text
        self._document: Document | None = None
        self._loaded = False

    def line(self, *at: str | int) -> int:
        """The 1-based line of the value at a path."""
        if not self._loaded:
            self._loaded = True
            # JSON is YAML, save for a few escapes; a text that is not has no lines.
            self._document = load_text(self._path, self._text, Faults())
        return self._document.place(*at)[0] if self._document is not None else 0


def read_json(path: Path, entry: Entry) -> JsonSource | None:
    """The JSON in a file, or None with the entry refused and the place of what is wrong."""
    text = read_text(path, entry)
    if text is None:
        return None
    duplicates: Counter[str] = Counter()

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(names) != len(set(names)):
            duplicates.update({name for name in names if names.count(name) > 1})
        return dict(pairs)

    def refuse_constant(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    try:
        value = json.loads(text, object_pairs_hook=keep, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1].strip()[:60]
        entry.refuse(f"not JSON: {error.lineno}:{error.colno}: {error.msg}; got {line!r}")
        return None
    except (ValueError, RecursionError) as error:
        entry.refuse(f"not JSON that can be read: {str(error)[:100] or 'nested too deeply'}")
        return None
    if _deeper(value, MAX_DEPTH):
        entry.refuse(f"its values are nested more than {MAX_DEPTH} levels deep")
        return None
    for name, count in sorted(duplicates.items()):
        objects = "one object" if count == 1 else f"{count} objects"
        entry.note("warning", 0, f"the key {name!r} is given twice in {objects}; the last one counts")
    return JsonSource(entry.source, text, value)


def _deeper(value: Any, levels: int) -> bool:
    """Whether anything stands more than `levels` containers deep."""
    layer = [value]
    for _ in range(levels):
        layer = [
            item
            for box in layer
            if isinstance(box, (dict, list))
            for item in (box.values() if isinstance(box, dict) else box)
        ]
        if not layer:
            return False
    return any(isinstance(box, (dict, list)) for box in layer)
