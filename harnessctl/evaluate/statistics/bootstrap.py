"""Bootstrap: paired percentile intervals of a mean difference, over items or over clusters of them [C.4, Table 14].

What always holds: the same values and seed give the same interval; a pair is drawn whole, so that what makes an item hard
for both systems cancels. With clusters, whole clusters are drawn and the mean is over the items that they hold, so that
items of one family, which succeed and fail together, do not count as independent.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

RESAMPLES = 10_000
LEVEL = 0.95
#: Numbers that are drawn at once.
_AT_ONCE = 1 << 20


class Interval(msgspec.Struct, kw_only=True):
    """A mean with its percentile interval [low, high] at `level`. `p_not_above` is the share of resamples that are at most
    0: the paper's P_boot(delta <= 0). `n` items in `clusters` groups (null: each by itself)."""

    mean: float
    low: float
    high: float
    p_not_above: float
    n: int
    clusters: int | None = None
    level: float = LEVEL
    resamples: int = RESAMPLES
    seed: int = 0


def interval(
    deltas: Sequence[float],
    *,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Interval:
    """The interval of the mean of `deltas`, which are differences of pairs (b - a), so that the resampling is paired.
    `clusters` names each one's group. ValueError without values, or for one that is no number."""
    import numpy as np

    values = np.asarray(deltas, dtype=np.float64)
    if not len(values) or not np.isfinite(values).all():
        raise ValueError("an interval is of one or more finite numbers")
    generator = np.random.default_rng(seed)
    if clusters is None:
        means = np.concatenate(list(_item_means(values, generator, resamples)))
        groups = None
    else:
        sums, sizes = _grouped(values, clusters)
        groups = len(sums)
        means = np.concatenate(list(_cluster_means(sums, sizes, generator, resamples)))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(
        mean=float(values.mean()),
        low=float(low),
        high=float(high),
        # Sums of thirds are not quite 0 where they ought to be.
        p_not_above=float((means <= 1e-12).mean()),
        n=len(values),
        clusters=groups,
        level=level,
        resamples=resamples,
        seed=seed,
    )


def _item_means(values: Floats, generator: np.random.Generator, resamples: int) -> Iterator[Floats]:
    for drawn in _draws(len(values), generator, resamples):
        yield values[drawn].mean(axis=1)


def _cluster_means(sums: Floats, sizes: Floats, generator: np.random.Generator, resamples: int) -> Iterator[Floats]:
    for drawn in _draws(len(sums), generator, resamples):
        yield sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)


def _draws(n: int, generator: np.random.Generator, resamples: int) -> Iterator[Any]:
    """Places of `n`, (some resamples, n) at a time, with replacement. Small integers are drawn faster."""
    import numpy as np

    kind = np.uint16 if n <= 1 << 16 else np.uint32
    step = max(1, _AT_ONCE // n)
    for start in range(0, resamples, step):
        yield generator.integers(0, n, size=(min(step, resamples - start), n), dtype=kind)


def _grouped(values: Floats, clusters: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """Sum and size of each cluster, in the order in which they first come."""
    import numpy as np

    places: dict[Hashable, int] = {}
    at = [places.setdefault(name, len(places)) for name in clusters]
    return np.bincount(at, weights=values).astype(np.float64), np.bincount(at).astype(np.float64)
