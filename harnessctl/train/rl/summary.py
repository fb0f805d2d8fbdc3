"""Summary: what the rollouts of a batch came to, as metrics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harnessctl.train.rl.advantages import DIMENSIONS, Advantage


@dataclass(slots=True)
class Tally:
    """One rollout, in short. `raw` are its advantages before the batch normalisation, null where it has none."""

    stop: str
    is_variant: bool
    scores: dict[str, float | None]
    cot: dict[str, int]
    said: int
    raw: Advantage | None = None
    is_kept: bool = False


def metrics_of(tallies: Sequence[Tally]) -> dict[str, float]:
    """Means over the batch's rollouts. `discarded` and `unscored` are shares of all of them; `cot/<group>` counts tokens, 0
    where there was no reasoning."""
    found: dict[str, float] = {"rollouts": len(tallies)}
    for dimension in (name for names in DIMENSIONS.values() for name in names):
        found |= _mean(f"reward/{dimension}", (tally.scores[dimension] for tally in tallies))
    found |= _mean("reward/original", (_average(t) for t in tallies if not t.is_variant))
    found |= _mean("reward/variant", (_average(t) for t in tallies if t.is_variant))
    found |= _mean("unscored", (float(tally.raw is None) for tally in tallies))
    found |= _mean("discarded", (float(tally.raw is not None and not tally.is_kept) for tally in tallies))
    found |= _mean("said", (float(tally.said) for tally in tallies))
    for group in DIMENSIONS:
        found |= _mean(f"cot/{group}", (float(tally.cot[group]) for tally in tallies if tally.raw is not None))
        raw = [getattr(tally.raw, group) for tally in tallies if tally.is_kept]
        values = [value for value in raw if value is not None]
        found |= _mean(f"advantage/{group}", values)
        if values:
            mean = math.fsum(values) / len(values)
            found[f"advantage/{group}_std"] = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
    for stop, count in sorted(Counter(tally.stop for tally in tallies).items()):
        found[f"stop/{stop}"] = count / len(tallies)
    return found


def _average(tally: Tally) -> float | None:
    """AVG of the reply's dimensions."""
    values = [tally.scores[name] for name in DIMENSIONS["reply"]]
    given = [value for value in values if value is not None]
    return sum(given) / len(given) if len(given) == len(values) else None


def _mean(name: str, values: Iterable[float | None]) -> dict[str, float]:
    given = [value for value in values if value is not None]
    return {name: math.fsum(given) / len(given)} if given else {}
