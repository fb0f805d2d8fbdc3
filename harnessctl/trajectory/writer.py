"""Writing trajectories: one line of JSON each, appended with a single write, so that a crash tears at most the last."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import orjson

from harnessctl.records.trajectory import Trajectory
from harnessctl.storage import JsonLinesWriter

_encoder = msgspec.json.Encoder()
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class TrajectoryWriter:
    """Appends trajectories to `path`. StorageError when the disk refuses; the file then holds only whole lines.

    `durable` waits for the disk at every line (fsync).
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self._lines = JsonLinesWriter(path, durable=durable)
        self.path = path

    def write(self, trajectory: Trajectory) -> None:
        """Append one trajectory."""
        self._lines.write(encode_trajectory(trajectory))

    def close(self) -> None:
        """Flush to disk and close; closing twice is allowed."""
        self._lines.close()

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def encode_trajectory(trajectory: Trajectory) -> bytes:
    """One line of JSON, without its newline. Lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    try:
        return _encode(trajectory)
    except (UnicodeEncodeError, orjson.JSONEncodeError):
        return _encoder.encode(_plain(msgspec.to_builtins(trajectory)))


def _encode(trajectory: Trajectory) -> bytes:
    """Messages, most of the bytes, go through orjson, which copies long text ten times as fast, and are put in last."""
    if not trajectory.messages:
        return _encoder.encode(trajectory)
    rest = _encoder.encode(msgspec.structs.replace(trajectory, messages=[]))
    return b"".join((rest[:-1], b',"messages":', orjson.dumps(trajectory.messages), b"}"))


def _plain(value: Any) -> Any:
    """`value` as any JSON encoder takes it."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
