"""Once: what depends on a parent state alone, worked out once and given to each of its variants."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from harnessctl.bundle.state import HarnessState

T = TypeVar("T")

#: How many states each function remembers; a run augments one, or a few in turn.
KEPT = 8


def once(make: Callable[[HarnessState], T]) -> Callable[[HarnessState], T]:
    """`make`, which is pure, asked once for each state; states are known by identity and are not to be altered."""
    found: OrderedDict[int, tuple[HarnessState, T]] = OrderedDict()

    def of(state: HarnessState) -> T:
        key = id(state)
        held = found.get(key)
        if held is not None:
            return held[1]
        value = make(state)
        # The state is held with its value, so that no other object can have its identity meanwhile.
        found[key] = (state, value)
        if len(found) > KEPT:
            found.popitem(last=False)
        return value

    of.__doc__ = make.__doc__
    return of
