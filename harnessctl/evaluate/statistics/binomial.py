"""Binomial: the exact two-sided sign test, for wins against losses [5.7, Table 8]."""

from __future__ import annotations

from fractions import Fraction
from math import comb


def sign_test(wins: int, losses: int) -> float:
    """The probability, where either side wins half of the time, of a split that is at most as likely as this one. Ties are
    left out, as they say nothing of which side is better; with nothing but ties it is 1. ValueError below 0."""
    if wins < 0 or losses < 0:
        raise ValueError("counts are at least 0")
    n, fewer = wins + losses, min(wins, losses)
    tail = sum(comb(n, count) for count in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))
