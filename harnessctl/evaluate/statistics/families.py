"""Families: where a difference is worst: the group of items that falls furthest."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harnessctl.evaluate.statistics.bootstrap import LEVEL, RESAMPLES, Interval, interval


class FamilyDelta(msgspec.Struct, kw_only=True):
    """The difference of one family. The interval's level is Bonferroni's: what is said of all families together holds at
    the level that was asked for."""

    name: str
    interval: Interval


def by_family(
    deltas: Sequence[float],
    names: Sequence[str],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> list[FamilyDelta]:
    """Each family's difference, the worst first; families of equal difference by name. Looking at the worst of many is
    looking often, so each interval is at 1 - (1 - level) / families."""
    groups: dict[str, list[float]] = {}
    for name, delta in zip(names, deltas, strict=True):
        groups.setdefault(name, []).append(delta)
    each = 1 - (1 - level) / max(1, len(groups))
    found = [
        FamilyDelta(name=name, interval=interval(values, seed=seed, resamples=resamples, level=each))
        for name, values in groups.items()
    ]
    return sorted(found, key=lambda one: (one.interval.mean, one.name))
