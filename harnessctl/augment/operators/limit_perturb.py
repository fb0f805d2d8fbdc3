"""limit-perturb: limits moved within their ranges; texts, templates, checks and scores follow by themselves [3.2].

What always holds: a limit without a range stays; a whole number stays whole; the new value lies in the limit's own range
and in the envelope's, and is not the old one; it leaves room for what the sample needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.laws.numbers import written_out
from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState, Number

#: Values between the ends of a range of which one is drawn where it is no whole number.
STEPS = 100


class LimitPerturb:
    """Targets: limits that have a range, but for those whose number is written out where it cannot follow. Runs before the hooks' operators, which keep within the rounds."""

    name = "limit-perturb"
    dimension: Dimension = "system-prompt"
    stage: Stage = "reorder"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset({"ranges"})

    def targets(self, draft: Draft) -> Sequence[str]:
        return _movable(draft.state)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        limit = draft.state.limits[target]
        assert limit.range is not None
        low, high = limit.range
        wished = settings.ranges.get(target)
        if wished is not None:
            low, high = max(low, wished[0]), min(high, wished[1])
        low = max(low, _floor(target, draft))
        value = (
            _whole(limit.value, low, high, stream)
            if isinstance(limit.value, int)
            else _real(limit.value, low, high, stream)
        )
        if value is None:
            return False
        draft.changes.limits[target] = value
        return True


@once
def _movable(state: HarnessState) -> list[str]:
    told = written_out(state)
    return sorted(name for name, limit in state.limits.items() if limit.range is not None and name not in told)


def _floor(limit: str, draft: Draft) -> float:
    needs = draft.needs
    if needs is None:
        return -math.inf
    return {"reply_max_chars": needs.min_chars, "max_rounds": needs.min_rounds}.get(limit, -math.inf)


def _whole(old: int, low: float, high: float, stream: Stream) -> Number | None:
    """A whole number from `low` to `high` other than `old`; None where there is none."""
    first, last = math.ceil(low), math.floor(high)
    has_old = first <= old <= last
    if last - first < has_old:
        return None
    value = stream.integer(first, last - has_old)
    return value + 1 if has_old and value >= old else value


def _real(old: float, low: float, high: float, stream: Stream) -> Number | None:
    """One of `STEPS` numbers from `low` to `high`, four digits each, other than `old`; None where there is none."""
    if low > high:
        return None
    start = stream.integer(0, STEPS)
    for step in range(start, start + STEPS + 1):
        exact = low + (high - low) * (step % (STEPS + 1)) / STEPS
        value = min(max(float(f"{exact:.4g}"), low), high)
        if value != old:
            return float(value)
    return None


OPERATOR = LimitPerturb()
