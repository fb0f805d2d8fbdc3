"""Outcome: one item carried out, as the lines that go to disk."""

from __future__ import annotations

import msgspec

from harnessctl.evaluate.items import Item
from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.scorer import Tables
from harnessctl.trajectory import encode_trajectory

_encoder = msgspec.json.Encoder()


class EndTables(msgspec.Struct, kw_only=True):
    """The tables that an item's end state is judged by, as they were after the request; one line of end_states.jsonl."""

    id: str
    tables: dict[str, list[dict[str, object]]]


class Outcome(msgspec.Struct, kw_only=True):
    """`error` says why there is no answer; `is_cached`: it was taken from an earlier run. `lines` maps a record file (by the
    names of evaluate.files) to this item's line, without its newline."""

    number: int
    repeat: int
    id: str
    stop: str
    error: str | None = None
    is_cached: bool = False
    average: float | None
    lines: dict[str, bytes]


def outcome_of(
    item: Item, trajectory: Trajectory, score: Score, after: Tables | None, *, is_cached: bool = False
) -> Outcome:
    """The lines of one item."""
    lines = {"scenarios": _encoder.encode(item.scenario)}
    if item.variation is not None:
        lines["variations"] = _encoder.encode(item.variation)
    lines["trajectories"] = encode_trajectory(trajectory)
    if after:
        tables = {name: list(rows) for name, rows in after.items()}
        lines["end_states"] = _encoder.encode(EndTables(id=trajectory.id, tables=tables))
    lines["scores"] = _encoder.encode(score)
    return Outcome(
        number=item.number,
        repeat=item.repeat,
        id=trajectory.id,
        stop=trajectory.stop,
        error=trajectory.error,
        is_cached=is_cached,
        average=score.average,
        lines=lines,
    )
