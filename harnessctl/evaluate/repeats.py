"""Repeats: an item answered several times, each time as a request with an id of its own, from which its seeds come.

What always holds: repeats of an item differ by what the policy says and by nothing else: scenario, harness and injected
faults are the same.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from harnessctl.bundle.state import Tool
from harnessctl.evaluate.items import Item
from harnessctl.runtime.protocols import FaultSource, InjectedFault

_MARK = re.compile(r"#[0-9.]+$")


def named(item: Item, mark: str) -> Item:
    """The item with `#` and a mark (digits and dots) behind its request's id. The scenario's own id stays, so that a score
    says of what it is."""
    scenario = item.scenario
    request = msgspec.structs.replace(scenario.request, id=f"{scenario.request.id}#{mark}")
    return Item(
        item.number, msgspec.structs.replace(scenario, request=request), item.bundle, item.variation, item.repeat
    )


def repeated_id(name: str, repeat: int) -> str:
    """The id of repeat `repeat` (from 0) of the request `name`: the second is `<name>#2`."""
    return name if repeat == 0 else f"{name}#{repeat + 1}"


def repeat_of(request_id: str, scenario_id: str) -> int:
    """The repeat that a request's id says, which is made of its scenario's."""
    mark = request_id.removeprefix(scenario_id).removeprefix("#")
    return int(mark) - 1 if mark.isdigit() else 0


def repeated(item: Item, repeat: int) -> Item:
    """Repeat `repeat` (from 0) of an item; the first is the item itself."""
    if repeat == 0:
        return item
    again = named(item, str(repeat + 1))
    return Item(again.number, again.scenario, again.bundle, again.variation, repeat)


class SameFaults:
    """A FaultSource that tells the repeats of an item not apart: the mark behind an id is not looked at."""

    def __init__(self, inner: FaultSource) -> None:
        self._inner = inner

    def draw(self, request_id: str, tool: Tool, args: dict[str, Any], number: int) -> InjectedFault | None:
        """The fault that every repeat meets at this call."""
        return self._inner.draw(_MARK.sub("", request_id), tool, args, number)
