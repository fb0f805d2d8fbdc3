"""Clock of a simulation, in which no time passes: records of equal runs are equal, byte for byte.

Only for policies and tools that answer at once: an endpoint's time-outs, a command's, a judge's are real time.
"""

from __future__ import annotations

from datetime import UTC, datetime

from harnessctl.runtime.clock import Clock

#: Far beyond what any machine's clock says, so that what compares a deadline with real time sees it still to come.
_MONOTONIC_S = 1e9
_NOW = datetime(2000, 1, 1, tzinfo=UTC)


async def _at_once(seconds: float) -> None:
    del seconds


def still_clock() -> Clock:
    """A clock that stands at midnight of 1 January 2000 UTC; who sleeps by it is awake at once."""
    return Clock(monotonic=lambda: _MONOTONIC_S, perf=lambda: 0.0, now=lambda: _NOW, sleep=_at_once)
