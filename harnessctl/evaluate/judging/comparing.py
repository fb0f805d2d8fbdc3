"""Comparing: what the votes of a pass come to: each voter beside the panel, the panel beside other grades, coverage.

What always holds: a share is over the items that have both grades; items that lack one are counted beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from harnessctl.evaluate.judging.agreement import STEPS, Agreement, agreement
from harnessctl.evaluate.judging.panel import Jury
from harnessctl.records.vote import Vote

#: Grades of one item by dimension.
Grades = Mapping[str, float | None]


class VoterRow(msgspec.Struct, kw_only=True):
    """One voter over all items. `accuracy` and `effectiveness` hold it against the panel's verdicts; `means` are its own."""

    voter: str
    model: str
    votes: int
    scored: int
    attempts: int
    lookups: int
    prompt_tokens: int
    completion_tokens: int
    causes: dict[str, int]
    means: dict[str, float | None]
    accuracy: Agreement
    effectiveness: Agreement


class PanelReport(msgspec.Struct, kw_only=True):
    """What a panel's pass came to. `coverage` is the share of items with both verdicts; `split` counts items on which the
    voters differ, by dimension; `unasked` items that there was nothing to judge in."""

    scorer: str
    role: str
    judge: str
    judge_digest: str
    sees: str
    items: int
    unasked: int
    coverage: float
    verdicts: dict[str, int]
    split: dict[str, int]
    voters: list[VoterRow]


def panel_report(jury: Jury, votes: Sequence[Sequence[Vote]], verdicts: Sequence[Grades]) -> PanelReport:
    """The report of the votes on each item (none where it was not asked about) and the verdicts on them, in one order."""
    asked = [(of_item, verdict) for of_item, verdict in zip(votes, verdicts, strict=True) if of_item]
    complete = sum(all(verdict[name] is not None for name in STEPS) for _, verdict in asked)
    return PanelReport(
        scorer=jury.scorer,
        role=jury.role,
        judge=f"{jury.bundle.name}-{jury.bundle.version}",
        judge_digest=jury.bundle.digest,
        sees="gold" if jury.sees_gold else "reply",
        items=len(votes),
        unasked=len(votes) - len(asked),
        coverage=complete / len(votes) if votes else 0.0,
        verdicts={name: sum(verdict[name] is not None for _, verdict in asked) for name in STEPS},
        split={
            name: sum(len({getattr(v, name) for v in of_item} - {None}) > 1 for of_item, _ in asked) for name in STEPS
        },
        voters=[
            _voter_row(name, [of_item[n] for of_item, _ in asked], [verdict for _, verdict in asked])
            for n, name in enumerate(jury.voters)
        ],
    )


def _voter_row(name: str, votes: Sequence[Vote], verdicts: Sequence[Grades]) -> VoterRow:
    given = {step: [getattr(vote, step) for vote in votes if getattr(vote, step) is not None] for step in STEPS}
    held = {
        step: agreement(
            ((verdict[step], getattr(vote, step)) for vote, verdict in zip(votes, verdicts, strict=True)), step
        )
        for step in STEPS
    }
    return VoterRow(
        voter=name,
        model=votes[0].model if votes else "",
        votes=len(votes),
        scored=len(given["accuracy"]),
        attempts=sum(vote.attempts for vote in votes),
        lookups=sum(vote.lookups for vote in votes),
        prompt_tokens=sum(vote.prompt_tokens for vote in votes),
        completion_tokens=sum(vote.completion_tokens for vote in votes),
        causes=dict(sorted(Counter(vote.cause for vote in votes if vote.cause is not None).items())),
        means={step: sum(values) / len(values) if values else None for step, values in given.items()},
        accuracy=held["accuracy"],
        effectiveness=held["effectiveness"],
    )
