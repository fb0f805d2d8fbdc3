"""Gate: whether a run reaches what its suite asks of it.

What always holds: a mean over no items passes no gate; means are compared before rounding.
"""

from __future__ import annotations

import msgspec

from harnessctl.evaluate.metrics import HEADINGS
from harnessctl.evaluate.report import Report, percent
from harnessctl.manifests.specs.suite import Gate

#: What a gate may name, besides the coverage.
METRICS = tuple(HEADINGS)


class Missed(msgspec.Struct, kw_only=True):
    """A bound that was not reached, in percent; `found` is null where no item has the score."""

    metric: str
    least: float
    found: float | None

    def told(self) -> str:
        """`average 84.0, at least 90`."""
        found = "no score" if self.found is None else percent(self.found / 100)
        return f"{self.metric} {found}, at least {self.least:g}"


class Gated(msgspec.Struct, kw_only=True):
    """What came of a gate."""

    passed: bool
    missed: list[Missed] = []

    def told(self) -> str:
        """As a line: `gate passed`, or what was missed."""
        return "gate passed" if self.passed else f"gate missed: {'; '.join(one.told() for one in self.missed)}"


def gated(report: Report, gate: Gate) -> Gated:
    """The report held against the gate."""
    found: dict[str, float | None] = {"coverage": report.coverage} | {
        name: report.total.value(name) for name in METRICS
    }
    wanted = {"coverage": gate.coverage, **gate.least}
    missed = [one for name, least in wanted.items() if (one := _missed(name, least, found[name])) is not None]
    return Gated(passed=not missed, missed=missed)


def _missed(metric: str, least: float, found: float | None) -> Missed | None:
    if found is None:
        return Missed(metric=metric, least=least, found=None)
    return None if 100 * found >= least - 1e-9 else Missed(metric=metric, least=least, found=100 * found)
