"""Items of a log: the lines of JSON Lines, or the members of a list in a JSON document, each with its place."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from harnessctl.errors import RecordError, StorageError
from harnessctl.runtime.tools.http import MISSING, at_pointer

#: A longer line, or a larger JSON document, is not read.
MAX_LINE_BYTES = 64 << 20
MAX_DOCUMENT_BYTES = 1 << 30


class Unreadable(str):
    """Why an item could not be read, in its place."""


def read_items(path: Path, pointer: str) -> Iterator[tuple[str, Any]]:
    """(place, item) for each item; an item that is no JSON is an `Unreadable`. A torn last line is passed over.

    RecordError when a JSON document is none or has no list at `pointer`; StorageError when the file cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise StorageError(f"cannot read {path}: it is no regular file")
        if path.suffix.lower() == ".json":
            yield from _members(path, pointer)
        else:
            yield from _lines(path)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 2):
            number += 1
            place = f"{path}:{number}"
            if len(line) > MAX_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
                yield place, Unreadable(f"the line is longer than {MAX_LINE_BYTES >> 20} MiB")
                continue
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not text.strip():
                continue
            try:
                item = orjson.loads(text)
            except orjson.JSONDecodeError as error:
                if not line.endswith(b"\n"):
                    return
                item = Unreadable(f"not JSON: {error.msg}")
            yield place, item


def _members(path: Path, pointer: str) -> Iterator[tuple[str, Any]]:
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise RecordError(f"{path}: the document is larger than 1 GiB", hint="write its items as JSON Lines")
    try:
        document = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise RecordError(
            f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}",
            hint="a file of JSON Lines ends in .jsonl",
        ) from error
    members = at_pointer(document, pointer)
    where = f"at {pointer} " if pointer else ""
    if members is MISSING or not isinstance(members, list):
        got = "nothing" if members is MISSING else f"a value of type {type(members).__name__}"
        raise RecordError(
            f"{path}: {where}there is no list of items; got {got}",
            hint="`items: /a/b` in the mapping says where the list is",
        )
    for number, member in enumerate(members, 1):
        yield f"{path}: item {number}", member
