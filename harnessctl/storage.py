"""Bytes on disk: atomic writes, canonical JSON, digests, and JSON Lines that survive kill -9.

What always holds: a reader sees the old file or the new file, never a part of one; a line of a
JSON Lines file is whole or is the torn last one, which readers report and writers cut off.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from harnessctl.errors import RecordError, StorageError


def canonical_json(value: Any) -> bytes:
    """`value` as RFC 8785 canonical JSON.

    StorageError for what that form cannot hold: an integer that no double holds exactly, NaN, infinity, a lone
    surrogate, values nested too deeply. What was read from the result gives the same bytes again.

    orjson writes the same bytes, many times faster, for all but keys outside ASCII (RFC 8785 sorts by UTF-16 units) and
    floats that either writes with an exponent; what has one of those goes the long way.
    """
    try:
        return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS)
    except (_NotPlain, TypeError):
        pass  # TypeError: a lone surrogate, say, which the long way names
    except RecursionError:
        raise StorageError("not representable as canonical JSON: nested too deeply") from None
    import rfc8785

    try:
        return rfc8785.dumps(_doubles(value))
    except rfc8785.CanonicalizationError as error:
        raise StorageError(f"not representable as canonical JSON: {error}") from error
    except RecursionError:
        raise StorageError("not representable as canonical JSON: nested too deeply") from None


class _NotPlain(Exception):
    """A value that orjson does not write as RFC 8785 wants it."""


def _plain(value: Any) -> Any:
    """`value` with floats that are whole as integers: what orjson writes as RFC 8785 wants it; _NotPlain otherwise."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is dict:
        if not all(type(key) is str and key.isascii() for key in value):
            raise _NotPlain
        return {key: item if type(item) is str else _plain(item) for key, item in value.items()}
    if kind is list:
        return [item if type(item) is str else _plain(item) for item in value]
    if kind is int and -(2**53) < value < 2**53:
        return value
    if kind is float and 1e-4 <= abs(value) < 2**53:
        return int(value) if value.is_integer() else value
    if value == 0.0:
        return 0
    raise _NotPlain


def _doubles(value: Any) -> Any:
    """`value` with integers beyond 2^53 - 1 as floats where a float is exactly that: 1e17 is written without an exponent
    and so read back as an integer."""
    if isinstance(value, dict):
        return {key: _doubles(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_doubles(item) for item in value]
    if type(value) is int and 2**53 <= abs(value) < 10**21 and int(float(value)) == value:
        return float(value)
    return value


def digest_bytes(data: bytes) -> str:
    """Lower-case hexadecimal SHA-256 of `data` (64 characters)."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`."""
    return digest_bytes(canonical_json(value))


def read_bytes(path: Path) -> bytes:
    """The bytes of `path`; StorageError names the file and the cause."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to `path` through a temporary file beside it, fsync and rename.

    On any failure (a full disk too) the old file stays and the temporary one is removed.
    """
    temporary = ""
    try:
        make_folder(path.parent)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def make_folder(path: Path) -> None:
    """Make a folder and those above it; NotADirectoryError where a file of its name is in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, f"{path} is not a folder") from None


class JsonLinesWriter:
    """Appends JSON documents, one a line, each with a single write so that kill -9 tears at most the last line.

    Opening an existing file cuts a torn last line off first. `durable` adds an fsync per line.
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self.path = path
        self._durable = durable
        try:
            make_folder(path.parent)
            cut_torn_line(path)
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise StorageError(f"cannot open {path}: {error.strerror}") from error

    def write(self, document: bytes) -> None:
        """Append one encoded JSON document (no newline inside); StorageError when the disk refuses.

        A short write (disk full) is undone, so that the file keeps only whole lines.
        """
        line = document + b"\n"
        try:
            done = os.write(self._fd, line)
            if done != len(line):
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - done)
                raise StorageError(f"cannot write {self.path}: no space left on device")
            if self._durable:
                os.fsync(self._fd)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Flush to disk and close; closing twice is allowed."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> JsonLinesWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def cut_torn_line(path: Path) -> int:
    """Cut what follows the last newline of `path` off; returns the number of bytes removed (0 if the file is whole)."""
    try:
        with open(path, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            end = size
            while end:
                start = max(0, end - 65536)
                file.seek(start)
                found = file.read(end - start).rfind(b"\n")
                if found >= 0:
                    end = start + found + 1
                    break
                end = start
            if end != size:
                file.truncate(end)
            return size - end
    except FileNotFoundError:
        return 0


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number, document) for each line of `path`; blank lines are passed over.

    A torn last line (no newline, not JSON) ends the reading quietly; any other bad line raises
    RecordError with path, line and cause.
    """
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield number, orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    if not line.endswith(b"\n"):
                        return
                    raise RecordError(f"{path}:{number}: not JSON: {error}") from error
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
