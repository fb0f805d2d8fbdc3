"""Retention: trajectories older than a moment are taken out of a file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from harnessctl.errors import RecordError
from harnessctl.storage import read_bytes, write_atomic
from harnessctl.trajectory.reader import read_trajectories


def drop_before(path: Path, moment: datetime) -> int:
    """Take the trajectories that began before `moment` (with a time zone) out of `path`; returns how many.

    The file is replaced whole; the lines that stay keep their bytes. Nobody else may be appending to it. RecordError
    when a line cannot be read, and nothing is changed.
    """
    lines = [line for line in read_bytes(path).splitlines(keepends=True) if line.strip()]
    kept: list[bytes] = []
    dropped = 0
    for line, trajectory in zip(lines, read_trajectories(path), strict=False):
        try:
            is_old = datetime.fromisoformat(trajectory.started) < moment
        except ValueError as error:
            raise RecordError(f"{path}: trajectory {trajectory.id}: started: {error}") from error
        if is_old:
            dropped += 1
        else:
            kept.append(line)
    if dropped:
        write_atomic(path, b"".join(kept))
    return dropped
