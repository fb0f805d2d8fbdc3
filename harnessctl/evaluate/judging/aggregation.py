"""Aggregation: one verdict of many votes [B.4, C.1].

What always holds: a verdict is one that the votes which are missing could not change. Accuracy is what a strict
majority of the whole panel says; Effectiveness is the median of the whole panel, wherever the missing votes may lie.
So no median of an even number of votes is ever taken: two votes of three that differ (0.5 and 1) are no score, for the
third decides between them; two that agree are their score.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_high, median_low


def majority(votes: Sequence[float | None]) -> float | None:
    """The value that more than half of all votes have, missing ones (null) counted among all; null when none has."""
    given = [vote for vote in votes if vote is not None]
    return next((value for value in set(given) if 2 * given.count(value) > len(votes)), None)


def median(votes: Sequence[float | None], *, lowest: float = 0.0, highest: float = 1.0) -> float | None:
    """The median of all votes, where it is the same whatever the missing ones (null) in [lowest, highest] would be; for an
    even number of votes, where both middle ones are equal. Else null."""
    if not votes:
        return None
    low = median_low([lowest if vote is None else vote for vote in votes])
    high = median_high([highest if vote is None else vote for vote in votes])
    return low if low == high else None
