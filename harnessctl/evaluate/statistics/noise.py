"""Noise: how far two runs of one system differ by chance, from an A/A pair of runs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harnessctl.evaluate.statistics.bootstrap import LEVEL, RESAMPLES


class Noise(msgspec.Struct, kw_only=True):
    """`delta` is what the A/A pair differed by, `bound` what the mean difference of two runs of one system stays within
    with probability `level`."""

    delta: float
    bound: float
    n: int
    level: float = LEVEL

    def covers(self, delta: float, n: int) -> bool:
        """Whether a difference over `n` items is within noise; the bound is scaled to their number."""
        return abs(delta) <= self.bound * (self.n / n) ** 0.5 + 1e-12


def noise(deltas: Sequence[float], *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL) -> Noise:
    """The noise that an A/A pair's differences show: which run of a pair is called the first is chance, so every sign is
    drawn anew, and `bound` is the quantile of what the mean then comes to. ValueError without values."""
    import numpy as np

    values = np.asarray(deltas, dtype=np.float64)
    if not len(values) or not np.isfinite(values).all():
        raise ValueError("noise is of one or more finite numbers")
    generator = np.random.default_rng(seed)
    moved = values[values != 0]  # the others stay 0 whatever their sign
    means = np.zeros(resamples)
    for number in range(resamples):
        signs = generator.integers(0, 2, size=len(moved), dtype=np.int8)
        means[number] = abs(float(moved[signs == 1].sum() - moved[signs == 0].sum())) / len(values)
    return Noise(delta=float(values.mean()), bound=float(np.quantile(means, level)), n=len(values), level=level)
