"""Verdict: a panel's votes on one trajectory as its score, beside the measures of the rules that need no judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from harnessctl.evaluate.judging.aggregation import majority, median
from harnessctl.records.score import Score
from harnessctl.records.vote import Vote

#: The dimensions that a panel grades.
GRADED = ("accuracy", "effectiveness")


def verdict(rules: Score, votes: Sequence[Vote], scorer: str) -> Score:
    """The panel's score: Accuracy by strict majority, Effectiveness by median (see `aggregation`).

    `rules` is what the rules say of the same trajectory: Tool Rationality and Skill Selection are theirs, which no judge
    grades here; so are the reasons where there is nothing to judge (no votes).
    """
    if not votes:
        return msgspec.structs.replace(rules, scorer=scorer, accuracy=None, effectiveness=None)
    reasons = {name: why for name, why in rules.reasons.items() if name not in GRADED}
    given = {name: [getattr(vote, name) for vote in votes] for name in GRADED}
    accuracy, effectiveness = majority(given["accuracy"]), median(given["effectiveness"])
    for name, value in (("accuracy", accuracy), ("effectiveness", effectiveness)):
        if value is None:
            reasons[name] = [_undecided(given[name], votes)]
        elif value < 1:
            reasons[name] = [f"{vote.voter}: {vote.reason}" for vote in votes if getattr(vote, name) == value]
    return msgspec.structs.replace(
        rules, scorer=scorer, accuracy=accuracy, effectiveness=effectiveness, reasons=reasons
    )


def _undecided(given: Sequence[float | None], votes: Sequence[Vote]) -> str:
    """Why there is no verdict, in words that can be counted."""
    counts = Counter(value for value in given if value is not None)
    said = [f"{count} for {value:g}" for value, count in sorted(counts.items())]
    missing = Counter(vote.cause for vote in votes if vote.cause is not None)
    said += [f"{count} without a score ({cause})" for cause, count in sorted(missing.items())]
    return f"no verdict of the panel: {', '.join(said)}"
