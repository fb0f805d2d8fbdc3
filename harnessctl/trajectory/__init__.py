"""Trajectories on disk: writing, reading, what is shown of them, and how viewers are named in them."""

from harnessctl.trajectory.reader import (
    Ended,
    ids_done,
    read_trajectories,
    request_digest,
    requests_done,
    requests_ended,
)
from harnessctl.trajectory.retention import drop_before
from harnessctl.trajectory.viewers import ViewerNames
from harnessctl.trajectory.writer import TrajectoryWriter, encode_trajectory

__all__ = [
    "Ended",
    "TrajectoryWriter",
    "ViewerNames",
    "drop_before",
    "encode_trajectory",
    "ids_done",
    "read_trajectories",
    "request_digest",
    "requests_done",
    "requests_ended",
]
