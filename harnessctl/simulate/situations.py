"""Situations: tool calls that fail as an item of a set wants it, each time; a runtime.protocols.FaultSource [5.6].

| situation | every call of the tools that are due                                         |
|-----------|------------------------------------------------------------------------------|
| timeout   | gets no answer                                                               |
| malformed | gets an answer that does not fit the tool's result                           |
| denied    | is refused                                                                   |
| missing   | gets an answer with nothing in it: its texts empty, its numbers null         |

What always holds: a tool that writes is never called and then said to have told nothing; other calls meet the faults of
`inner`, which does not tell the two arms of a comparison apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from harnessctl.bundle.state import Tool
from harnessctl.records.scenario import Scenario
from harnessctl.runtime.protocols import FaultSource, InjectedFault

Situation = Literal["timeout", "malformed", "denied", "missing"]

#: What stands behind the id of a scenario that is answered under the edited harness.
EDITED = "@edited"
KINDS: tuple[Situation, ...] = ("timeout", "malformed", "denied", "missing")
_ERRORS: dict[str, tuple[Any, str]] = {
    "timeout": ("timeout", "no answer within 3 s"),
    "malformed": ("error", "the tool's result does not fit its schema: the result: it is cut off in the middle"),
    "denied": ("denied", "not permitted: the service refused the request"),
}


class Situations:
    """The faults of items with a situation, by the request's id; `inner` draws all others."""

    def __init__(self, scenarios: Mapping[str, Scenario], inner: FaultSource | None) -> None:
        self._scenarios = scenarios
        self._inner = inner

    def draw(self, request_id: str, tool: Tool, args: dict[str, Any], number: int) -> InjectedFault | None:
        """The fault of one call."""
        scenario = self._scenarios.get(request_id)
        task = None if scenario is None else scenario.task
        if scenario is not None and task is not None and task.situation and tool.name in due_tools(scenario):
            return _fault(task.situation, tool, args)
        return None if self._inner is None else self._inner.draw(request_id.replace(EDITED, ""), tool, args, number)


def due_tools(scenario: Scenario) -> set[str]:
    """The tools of gold's calls, and of those that may stand in their place."""
    gold = scenario.gold
    return set() if gold is None else {call.tool for plan in (gold.calls, *gold.alternatives) for call in plan}


def _fault(situation: str, tool: Tool, args: dict[str, Any]) -> InjectedFault:
    kind = "timeout" if situation == "missing" and tool.effect == "write" else situation
    if kind in _ERRORS:
        status, error = _ERRORS[kind]
        return InjectedFault(kind=kind, status=status, error=error)
    return InjectedFault(kind=kind, change=lambda result: _emptied(result, args))


def _emptied(value: Any, args: Mapping[str, Any]) -> Any:
    """A result that tells nothing but what the caller said."""
    if isinstance(value, dict):
        return {
            name: args[name] if name in args and args[name] == part else _emptied(part, {})
            for name, part in value.items()
        }
    if isinstance(value, list):
        return list[Any]()
    return "" if isinstance(value, str) else None
