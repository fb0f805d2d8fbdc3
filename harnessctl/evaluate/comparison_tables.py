"""Comparison tables: rows of text for terminals, Markdown and HTML, in the shape of the paper's Table 14."""

from __future__ import annotations

from harnessctl.evaluate.comparison import Comparison
from harnessctl.evaluate.metrics import HEADINGS
from harnessctl.evaluate.report import percent
from harnessctl.evaluate.statistics.bootstrap import Interval

Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]
#: Reasons that a line of the changed items has room for.
_REASONS = 2


def points(found: Interval) -> str:
    """`+8.5 [+4.4, +12.4]`: a difference in points with its interval."""
    return f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def share(value: float, resamples: int) -> str:
    """A share of resamples; none at all is less than one of them."""
    return f"<{1 / resamples:.4f}" if value == 0 else f"{value:.4f}"


def delta_rows(done: Comparison) -> Rows:
    """A row for each metric."""
    has_noise = any(delta.noise is not None for delta in done.deltas)
    head = ("", "A", "B", "B - A [95%]", "P(<=0)", *(("noise",) if has_noise else ()))
    rows: list[tuple[str, ...]] = []
    for delta in done.deltas:
        said = (
            "-"
            if delta.noise is None
            else ("within" if delta.is_noise else "beyond") + f" {100 * delta.noise.bound:.1f}"
        )
        rows.append(
            (
                HEADINGS[delta.metric],
                percent(delta.a),
                percent(delta.b),
                points(delta.interval),
                share(delta.interval.p_not_above, delta.interval.resamples),
                *((said,) if has_noise else ()),
            )
        )
    return head, rows


def family_rows(done: Comparison) -> Rows:
    """A row for each family, the worst first."""
    level = done.families[0].interval.level
    head = ("family", "n", f"AVG, B - A [{100 * level:.4g}%]")
    return head, [(one.name, str(one.interval.n), points(one.interval)) for one in done.families]


def changed_rows(done: Comparison) -> Rows:
    """A row for each of the items that changed most."""
    head = ("item", "family", "A", "B", "why")
    rows: list[tuple[str, ...]] = [
        (one.scenario, one.family, percent(one.a), percent(one.b), "; ".join(one.reasons[:_REASONS]))
        for one in done.changed
    ]
    return head, rows
