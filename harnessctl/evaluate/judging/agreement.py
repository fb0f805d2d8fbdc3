"""Agreement: how far two graders say the same of the same items: the share, Cohen's kappa, the table of both [B.4].

Kappa is 1 - sum(w O) / sum(w E) over the table O of counts and E of what the margins alone would give, with
w = [i != j] for Accuracy and ((i - j) / (k - 1))^2 (quadratic) for Effectiveness's k = 3 steps (Cohen 1960, 1968).
Where both graders say one same thing of every item, chance alone explains it: kappa is null, not 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

#: The steps of each dimension, in order.
STEPS: dict[str, tuple[float, ...]] = {"accuracy": (0.0, 1.0), "effectiveness": (0.0, 0.5, 1.0)}
#: A pair of grades of one item; null: that grader gave none.
Pair = tuple[float | None, float | None]


class Agreement(msgspec.Struct, kw_only=True):
    """`items` have a grade of both; `missing` lack one. `table[a][b]` counts items with `a` of the first (the reference)
    and `b` of the second; grades are written as `0`, `0.5`, `1`, and `-` for none."""

    items: int
    missing: int
    share: float | None
    kappa: float | None
    table: dict[str, dict[str, int]]


def agreement(pairs: Iterable[Pair], dimension: str) -> Agreement:
    """The agreement of pairs (reference, other). ValueError for a grade that is no step of the dimension."""
    steps = STEPS[dimension]
    names = [*(f"{step:g}" for step in steps), "-"]
    table = {first: dict.fromkeys(names, 0) for first in names}
    for first, second in pairs:
        table[_name(first, steps)][_name(second, steps)] += 1
    counts = [[table[a][b] for b in names[:-1]] for a in names[:-1]]
    items = sum(map(sum, counts))
    total = sum(sum(row.values()) for row in table.values())
    same = sum(counts[n][n] for n in range(len(steps)))
    return Agreement(
        items=items,
        missing=total - items,
        share=same / items if items else None,
        kappa=kappa(counts, quadratic=dimension == "effectiveness"),
        table=table,
    )


def kappa(counts: Sequence[Sequence[int]], *, quadratic: bool = False) -> float | None:
    """Cohen's kappa of a square table of counts; null where it is not defined (no items, or no disagreement is possible by
    the margins)."""
    size, total = len(counts), sum(map(sum, counts))
    if not total:
        return None
    rows = [sum(row) for row in counts]
    columns = [sum(row[n] for row in counts) for n in range(size)]
    seen = by_chance = 0.0
    for a in range(size):
        for b in range(size):
            weight = ((a - b) / (size - 1)) ** 2 if quadratic else float(a != b)
            seen += weight * counts[a][b]
            by_chance += weight * rows[a] * columns[b] / total
    return None if by_chance == 0 else 1 - seen / by_chance


def _name(grade: float | None, steps: Sequence[float]) -> str:
    if grade is None:
        return "-"
    if grade not in steps:
        raise ValueError(f"{grade!r} is none of {', '.join(f'{step:g}' for step in steps)}")
    return f"{grade:g}"
