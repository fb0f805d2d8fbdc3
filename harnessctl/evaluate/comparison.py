"""Comparison: two runs of one suite, item by item: differences with intervals, the worst family, what is noise [4.2, C.4].

What always holds: a pair is one scenario, word for word the same in both runs, its repeats averaged; what one run lacks or
has no score for is counted and left out of the pair alone; runs that were not asked the same are refused unless told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from harnessctl.errors import UsageError
from harnessctl.evaluate.compared_run import ComparedRun, read_compared
from harnessctl.evaluate.metrics import HEADINGS
from harnessctl.evaluate.statistics.bootstrap import LEVEL, RESAMPLES, Interval, interval
from harnessctl.evaluate.statistics.families import FamilyDelta, by_family
from harnessctl.evaluate.statistics.noise import Noise, noise
from harnessctl.evaluate.statistics.sample_size import items_needed

#: What two runs may differ in only where it is said: `--across`.
GUARDED = ("suite", "set", "template", "world")
#: The metric that families, changes and sample sizes are of.
LEADING = "average"
#: How many items that changed most are listed.
LISTED = 10
#: Differences whose sample size is told, in points.
POINTS = (1.0, 2.0, 5.0)


class Delta(msgspec.Struct, kw_only=True):
    """One metric: the means of both over the pairs that have it, in [0, 1], and the interval of b - a. `noise` is null
    without an A/A pair, `is_noise` says whether the difference lies within it."""

    metric: str
    a: float
    b: float
    interval: Interval
    noise: Noise | None = None
    is_noise: bool | None = None


class Changed(msgspec.Struct, kw_only=True):
    """A scenario whose AVG changed, and why it is below 1 where it fell or was."""

    scenario: str
    family: str
    a: float
    b: float
    reasons: list[str] = []


class Comparison(msgspec.Struct, kw_only=True):
    """Run b against run a. `pairs` scenarios were compared; `only_a` and `only_b` are in one run alone, `unscored` in
    both, and without a score in one of them. `sizes` maps points of difference to the items that show it."""

    a: str
    b: str
    systems: tuple[str, str]
    suite: str
    pairs: int
    only_a: int
    only_b: int
    unscored: int
    across: list[str]
    cluster: Literal["item", "family"]
    deltas: list[Delta]
    families: list[FamilyDelta]
    changed: list[Changed]
    sizes: dict[str, int]


def compare(
    a: Path,
    b: Path,
    *,
    across: Collection[str] = (),
    noise_of: tuple[Path, Path] | None = None,
    cluster: Literal["item", "family"] = "item",
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Comparison:
    """Compare two run folders of `eval`. `across` names what of GUARDED may differ; `noise_of` is an A/A pair of runs.

    UsageError where the runs were not asked the same, or have no pair with a score; RecordError for files that cannot
    be read.
    """
    if unknown := sorted(set(across) - set(GUARDED)):
        raise UsageError(f"across {', '.join(unknown)}: not known", hint=f"allowed: {', '.join(GUARDED)}")
    first, second = read_compared(a), read_compared(b)
    _check_same(first, second, across)
    names = [name for name in first.items if name in second.items]
    apart: dict[str, Noise] = {} if noise_of is None else _noises(noise_of, across, seed, resamples, level)
    deltas: list[Delta] = []
    for metric in HEADINGS:
        values = _pairs(first, second, names, metric)
        if not values:
            continue
        found = interval(
            [after - before for _, before, after in values],
            seed=seed,
            clusters=[first.items[name].family for name, _, _ in values] if cluster == "family" else None,
            resamples=resamples,
            level=level,
        )
        aside = apart.get(metric)
        deltas.append(
            Delta(
                metric=metric,
                a=sum(before for _, before, _ in values) / len(values),
                b=sum(after for _, _, after in values) / len(values),
                interval=found,
                noise=aside,
                is_noise=None if aside is None else aside.covers(found.mean, found.n),
            )
        )
    leading = _pairs(first, second, names, LEADING)
    if not leading:
        raise UsageError(f"{a} and {b} have no scenario that both have a score for", hint="are they of one seed?")
    moves = [after - before for _, before, after in leading]
    return Comparison(
        a=str(a),
        b=str(b),
        systems=(first.system, second.system),
        suite=first.suite,
        pairs=len(leading),
        only_a=sum(name not in second.items for name in first.items),
        only_b=sum(name not in first.items for name in second.items),
        unscored=len(names) - len(leading),
        across=sorted(across),
        cluster=cluster,
        deltas=deltas,
        families=by_family(
            moves, [first.items[name].family for name, _, _ in leading], seed=seed, resamples=resamples, level=level
        ),
        changed=_changed(first, second, leading),
        sizes={f"{points:g}": items_needed(moves, points / 100, level=level) for points in POINTS},
    )


def _pairs(a: ComparedRun, b: ComparedRun, names: Sequence[str], metric: str) -> list[tuple[str, float, float]]:
    """(scenario, value of a, value of b) where both have the metric."""
    found: list[tuple[str, float, float]] = []
    for name in names:
        before, after = a.items[name].mean(metric), b.items[name].mean(metric)
        if before is not None and after is not None:
            found.append((name, before, after))
    return found


def _noises(
    runs: tuple[Path, Path], across: Collection[str], seed: int, resamples: int, level: float
) -> dict[str, Noise]:
    first, second = (read_compared(run) for run in runs)
    _check_same(first, second, across)
    if first.system != second.system or first.bundle != second.bundle:
        raise UsageError(
            f"an A/A pair is two runs of one system; these are of {first.told()} and {second.told()}",
            hint="run the same policy under the same harness twice",
        )
    names = [name for name in first.items if name in second.items]
    found: dict[str, Noise] = {}
    for metric in HEADINGS:
        values = _pairs(first, second, names, metric)
        if values:
            found[metric] = noise(
                [after - before for _, before, after in values], seed=seed, resamples=resamples, level=level
            )
    return found


def _check_same(a: ComparedRun, b: ComparedRun, across: Collection[str]) -> None:
    """UsageError with the first thing that the runs differ in and may not."""
    changed = [name for name, item in a.items.items() if name in b.items and b.items[name].asked != item.asked]
    found = {
        "suite": (a.suite, b.suite) if a.suite != b.suite else None,
        "world": (_short(a.world), _short(b.world)) if a.world != b.world else None,
        "set": (f"{len(changed)} scenarios", f"the first is {changed[0]}") if changed else None,
        "template": (_told(a.templates), _told(b.templates)) if a.templates != b.templates else None,
    }
    for what, sides in found.items():
        if sides is not None and what not in across:
            said = (
                f"differ in {sides[0]} of the same name; {sides[1]}"
                if what == "set"
                else f"are of another {what}: {sides[0]}, {sides[1]}"
            )
            raise UsageError(f"{a.folder} and {b.folder} {said}", hint=f"--across {what} compares them all the same")


def _changed(a: ComparedRun, b: ComparedRun, leading: Sequence[tuple[str, float, float]]) -> list[Changed]:
    """The scenarios that changed most, falls before rises of the same size."""
    moved = [one for one in leading if one[1] != one[2]]
    ordered = sorted(moved, key=lambda one: (-abs(one[2] - one[1]), one[2] - one[1], one[0]))
    return [
        Changed(
            scenario=name,
            family=a.items[name].family,
            a=before,
            b=after,
            reasons=(b if after < before else a).items[name].reasons,
        )
        for name, before, after in ordered[:LISTED]
    ]


def _short(digest: str | None) -> str:
    return "none" if digest is None else digest[:12]


def _told(digests: Collection[str | None]) -> str:
    return ", ".join(sorted(_short(digest) for digest in digests)) or "none"
