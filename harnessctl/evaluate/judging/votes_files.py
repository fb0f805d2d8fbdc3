"""Votes on disk: votes.jsonl and judgements.jsonl of a run, in the order of items and voters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harnessctl.evaluate.judging.panel import Panel
from harnessctl.records.vote import Vote
from harnessctl.storage import write_atomic
from harnessctl.trajectory import encode_trajectory

VOTES = "votes.jsonl"
JUDGEMENTS = "judgements.jsonl"

_encoder = msgspec.json.Encoder()


def write_votes(folder: Path, panel: Panel, votes: Sequence[Sequence[Vote]]) -> None:
    """Write both files anew, atomically, whatever the order in which the answers came."""
    lines: list[bytes] = []
    judgements: list[bytes] = []
    for of_item in votes:
        for voter, vote in zip(panel.voters, of_item, strict=False):
            lines.append(_encoder.encode(vote) + b"\n")
            ballot = voter.ballots.read(vote.key)
            judgements += [encode_trajectory(each) + b"\n" for each in (ballot.judgements if ballot else [])]
    write_atomic(folder / JUDGEMENTS, b"".join(judgements))
    write_atomic(folder / VOTES, b"".join(lines))
