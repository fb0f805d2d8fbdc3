"""Fresh: is the last compile still the answer? Found out from file names and `stat` alone.

What always holds: an answer is given only when every file that the last compile read or wrote is as it was (size,
times, inode; the content's SHA-256 where those differ, or are too young to be trusted), no source was added or removed,
no file exists whose absence mattered, and harnessctl itself is the same. A cache that is torn, altered or of another
version is no cache. This module imports no parser and no validator.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import orjson

from harnessctl import __version__
from harnessctl.errors import Faults
from harnessctl.manifests.locate import find_sources, look

CACHE = "build/.cache"
INDEX = "compile.json"
#: A file changed within this many nanoseconds before it was read, or after, may have changed again with the same times.
_YOUNG_NS = 2_000_000_000

_PACKAGE = Path(__file__).parent.parent

Stat = list[Any]


def compiler_key() -> str:
    """What a cached answer depends on besides the project: the version, the compiler's own files, Python's version."""
    parts: list[Any] = [__version__, list(sys.version_info[:2])]
    for folder in ("", "bundle", "compile", "manifests", "manifests/specs"):
        with os.scandir(_PACKAGE / folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found = entry.stat()
                    parts.append([folder, entry.name, found.st_size, found.st_mtime_ns])
    parts.sort(key=str)
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def read_checked(path: Path) -> Any:
    """The JSON of a cache file whose first line is the SHA-256 of the rest; None for anything else."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    checksum, _, body = data.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def write_checked(path: Path, value: Any) -> None:
    """Write a cache file. A disk that refuses costs the cache and nothing else: the next compile does the work again."""
    body = orjson.dumps(value)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()


def stat_of(path: Path, digest: str) -> Stat | None:
    """How a file looks now, with the digest of its content; None when it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode, digest]


def read_index(root: Path) -> dict[str, Any] | None:
    """The index of the last compile, when all that it says still holds; None otherwise."""
    started_ns = time.time_ns()
    index = read_checked(root / CACHE / INDEX)
    if not isinstance(index, dict) or index.get("key") != compiler_key():
        return None
    faults = Faults()
    if [file.path for file in find_sources(root, faults).sources] != index["sources"] or faults.items:
        return None
    if any((look(root, path) != "nothing") != present for path, present in index["exists"].items()):
        return None
    renewed = False
    for path, seen in index["files"].items():
        state = _compare(root / path, seen, index["since_ns"])
        if state is None:
            return None
        if state is not seen:
            index["files"][path] = state
            renewed = True
    if renewed:
        write_index(root, index, started_ns)
    return index


def _compare(path: Path, seen: Stat, since_ns: int) -> Stat | None:
    """`seen` when the file is surely as it was, its new stat when its content is, None when it changed."""
    try:
        found = path.stat()
    except OSError:
        return None
    size, mtime, ctime, inode, mode, digest = seen
    if found.st_size != size or found.st_mode != mode:
        return None
    young = max(mtime, ctime) + _YOUNG_NS > since_ns
    if not young and (found.st_mtime_ns, found.st_ctime_ns, found.st_ino) == (mtime, ctime, inode):
        return seen
    try:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
    return [size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, mode, digest] if content == digest else None


def write_index(root: Path, index: dict[str, Any], since_ns: int) -> None:
    """Keep an index. `since_ns` is when the reading of the files began: one that changed while they were read, and was
    looked at by `stat` only afterwards, must not pass for the one that was read."""
    index["since_ns"] = since_ns
    write_checked(root / CACHE / INDEX, index)
