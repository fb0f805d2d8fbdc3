"""Reading trajectories back: typed, one by one, with path, line and cause where one cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from harnessctl.errors import RecordError
from harnessctl.records.trajectory import FORMAT, StopReason, Trajectory, Usage
from harnessctl.storage import digest_bytes, read_json_lines


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """Each trajectory of `path`, in order. RecordError names path, line and cause; a torn last line is passed over."""
    for number, document in read_json_lines(path):
        _check_format(path, number, document)
        try:
            yield msgspec.convert(document, Trajectory)
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: not a trajectory: {error}") from error


def ids_done(path: Path) -> dict[str, StopReason]:
    """How each request in `path` ended, by id: what a resumed run need not do again. Empty when there is no file.

    A request that was cancelled is not done.
    """
    return {ended.id: ended.stop for ended in requests_ended(path)}


def requests_done(path: Path) -> dict[str, tuple[StopReason, str]]:
    """How each request in `path` ended, and the digest of what was asked (`request_digest`), by id."""
    return {ended.id: (ended.stop, request_digest(ended.request)) for ended in requests_ended(path)}


def request_digest(request: dict[str, Any]) -> str:
    """SHA-256 of a request as trajectories record it."""
    return digest_bytes(orjson.dumps(request, option=orjson.OPT_SORT_KEYS))


class CountedCall(msgspec.Struct):
    """What a model call of a request took."""

    usage: Usage = msgspec.field(default_factory=Usage)
    attempts: int = 1


class Ended(msgspec.Struct):
    """The part of a trajectory that says how it ended and what it took."""

    id: str
    stop: StopReason
    request: dict[str, Any]
    calls: list[CountedCall] = []


def requests_ended(path: Path) -> Iterator[Ended]:
    """The requests of `path` that ended by themselves; none when there is no file."""
    if not path.exists():
        return
    for number, document in read_json_lines(path):
        _check_format(path, number, document)
        try:
            ended = msgspec.convert(document, Ended)
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: not a trajectory: {error}") from error
        if ended.stop != "cancelled":
            yield ended


def _check_format(path: Path, number: int, document: Any) -> None:
    found = document.get("format", FORMAT) if isinstance(document, dict) else None
    if found == FORMAT:
        return
    if isinstance(found, str) and found.startswith("harnessctl/trajectory."):
        raise RecordError(
            f"{path}:{number}: a trajectory of format {found}; this version reads {FORMAT}",
            hint="read it with the version of harnessctl that wrote it",
        )
    raise RecordError(
        f"{path}:{number}: not a trajectory; got {'format ' + repr(found) if found else 'no JSON object'}"
    )
