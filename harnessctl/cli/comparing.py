"""The work behind `harnessctl compare`: two runs, their tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

from harnessctl.cli import output
from harnessctl.errors import UsageError
from harnessctl.evaluate.comparison import Comparison, compare
from harnessctl.evaluate.comparison_tables import changed_rows, delta_rows, family_rows
from harnessctl.evaluate.statistics.extras import require_numpy


def compare_runs(
    a: Path,
    b: Path,
    *,
    across: Sequence[str],
    noise_of: tuple[Path, Path] | None,
    cluster: str,
    seed: int,
    resamples: int,
) -> Comparison:
    """The comparison; UsageError and RecordError say why there is none."""
    require_numpy()
    if cluster not in ("item", "family"):
        raise UsageError(f"cluster {cluster!r}: not known", hint="allowed: item, family")
    return compare(
        a,
        b,
        across=across,
        noise_of=noise_of,
        cluster=cast("Literal['item', 'family']", cluster),
        seed=seed,
        resamples=resamples,
    )


def show(done: Comparison) -> None:
    """Tables on stdout, what they are of on stderr."""
    output.talk(f"A  {done.systems[0]}\n   {done.a}\nB  {done.systems[1]}\n   {done.b}")
    head, rows = delta_rows(done)
    output.table(head, rows, title=f"{done.suite}, {output.plural(done.pairs, 'pair')}")
    for line in notes(done):
        output.talk(line)
    head, rows = family_rows(done)
    output.table(head, rows, title="by family, the worst first")
    if done.changed:
        head, rows = changed_rows(done)
        output.table(head, rows, title="changed most")


def notes(done: Comparison) -> list[str]:
    """What a reader must know of the table."""
    lines = [
        "in percent and points; 95% percentile intervals of a paired bootstrap over "
        + ("families" if done.cluster == "family" else "items")
        + f", {done.deltas[0].interval.resamples:,} resamples, seed {done.deltas[0].interval.seed}"
    ]
    apart = [f"{count} only in {side}" for side, count in (("A", done.only_a), ("B", done.only_b)) if count] + (
        [f"{done.unscored} without a score on a side"] if done.unscored else []
    )
    if apart:
        lines.append(f"left out: {', '.join(apart)}")
    if done.across:
        lines.append(f"the runs differ in {', '.join(done.across)}, as was told")
    sizes = ", ".join(f"{points} points {count:,}" for points, count in done.sizes.items())
    lines.append(f"items that show a difference in AVG of (power 80%): {sizes}")
    return lines
