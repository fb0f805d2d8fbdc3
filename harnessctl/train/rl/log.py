"""Log: the trajectories and scores of a training, for a person to read: `rollouts.jsonl` of the run's folder.

What always holds: lines are in the order of the steps, and none is of a step that was taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.storage import JsonLinesWriter, cut_torn_line, read_json_lines, write_atomic
from harnessctl.train.rl.objective import Judged

_encoder = msgspec.json.Encoder()


class RolloutLine(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One rollout. `step` counts from 1, as metrics do. `reply` and `tool` are its advantages after the batch normalisation, null
    where it was discarded (or says nothing of the policy: `unscored`), `tool` also where it called none."""

    step: int
    group: int
    trajectory: Trajectory
    score: Score
    variant: int | None = None
    reply: float | None = None
    tool: float | None = None
    unscored: bool = False


class RolloutLog:
    """Keeps the rollouts of every `every`-th batch; none with 0. Each process has a file of its own."""

    def __init__(self, folder: Path, *, every: int = 1, updates: int = 1, rank: int = 0) -> None:
        self.path = folder / ("rollouts.jsonl" if rank == 0 else f"rollouts-{rank}.jsonl")
        self._every = every
        self._updates = updates

    def rewind(self, step: int) -> None:
        """Drop what was kept of later steps than the `step`-th."""
        cut_torn_line(self.path)
        if self.path.is_file():
            lines = [line for _, line in read_json_lines(self.path)]
            kept = [line for line in lines if line["step"] <= step]
            if len(kept) < len(lines):
                write_atomic(self.path, b"".join(_encoder.encode(line) + b"\n" for line in kept))

    def write(self, step: int, judged: Sequence[Judged]) -> None:
        """Keep a batch, whose first step is `step` (from 0). StorageError when the disk is full."""
        if not self._every or step // self._updates % self._every:
            return
        with JsonLinesWriter(self.path) as lines:
            for one in judged:
                lines.write(_encoder.encode(_line(step + 1, one)))


def _line(step: int, one: Judged) -> RolloutLine:
    return RolloutLine(
        step=step,
        group=one.group.number,
        trajectory=one.rollout.trajectory,
        score=one.rollout.score,
        variant=one.group.variant,
        reply=None if one.final is None else one.final.reply,
        tool=None if one.final is None else one.final.tool,
        unscored=one.raw is None,
    )
