"""Gate: whether a run reaches what its suite asks of it.

What always holds: a mean over no items passes no gate; means are compared before rounding.
"""

from __future__ import annotations

import msgspec

from harnessctl.evaluate.report import COLUMNS, Report, percent
from harnessctl.manifests.specs.suite import Gate

#: What a gate may name, besides the coverage.
METRICS = tuple(COLUMNS)


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
    found = {"coverage": report.coverage} | {name: getattr(report.total, name) for name in METRICS}
    missed = [
        Missed(metric=name, least=least, found=None if found[name] is None else 100 * found[name])
        for name, least in {"coverage": gate.coverage, **gate.least}.items()
        if found[name] is None or 100 * found[name] < least - 1e-9
    ]
    return Gated(passed=not missed, missed=missed)
