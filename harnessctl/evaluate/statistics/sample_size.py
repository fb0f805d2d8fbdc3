"""Sample size: how many items show a difference of a given size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, pvariance


def items_needed(deltas: Sequence[float], difference: float, *, power: float = 0.8, level: float = 0.95) -> int:
    """Items for which a true mean difference of `difference` is told from 0 with probability `power` by a two-sided test at
    1 - `level`, where differences of pairs vary as in `deltas`: n = (z_level + z_power)^2 s^2 / d^2, the normal
    approximation. At least 1. ValueError for no deltas, or a difference that is not above 0."""
    if not deltas or difference <= 0:
        raise ValueError("a sample size is of given differences, and for one above 0")
    normal = NormalDist()
    z = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)
    return max(1, math.ceil(z * z * pvariance(deltas) / difference**2))
