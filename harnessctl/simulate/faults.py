"""Faults: tool calls that go wrong at set rates [3.3]; a runtime.protocols.FaultSource.

What always holds: whether a call fails depends on (seed, request, tool, arguments) and on how often the request made
that very call, on nothing else. A call made for the first time fails at the rates that were set; the same call made
again succeeds, but for a share `persist` of faults, which come every time. Only tools that run can fail: loading a
skill and ending the request cannot.

| kind      | the tool is called | the call comes to                                                              |
|-----------|--------------------|--------------------------------------------------------------------------------|
| timeout   | no                 | status `timeout`                                                               |
| malformed | no                 | status `error`, as for a service whose answer does not fit the result's schema |
| denied    | no                 | status `denied`                                                                |
| stale     | yes                | an old answer: `"stale": true`, `as_of` says how old, and numbers that moved   |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import Tool
from harnessctl.manifests.specs.world import FaultRates
from harnessctl.runtime.protocols import InjectedFault

KINDS = ("timeout", "malformed", "denied", "stale")
#: The key that marks an old answer.
STALE = "stale"
_TIMEOUTS = ("no answer within 3 s", "the service did not answer in time")
_DENIED = ("not permitted: the service refused the request", "not permitted: access was refused")
_AGES_MIN = (20, 45, 90, 240)
#: How far numbers of an old answer lie from those of now.
_MOVED = (0.8, 0.9, 1.1, 1.25)


class Faults:
    """Draws faults. With all rates at 0 there is none."""

    def __init__(self, rates: FaultRates, *, seed: int = 0) -> None:
        self.rates = rates
        self._seed = seed
        self._shares = [(kind, float(getattr(rates, kind))) for kind in KINDS]
        self._any = any(share > 0 for _, share in self._shares)

    def draw(self, request_id: str, tool: Tool, args: dict[str, Any], number: int) -> InjectedFault | None:
        """The fault of the request's `number`-th call (from 0) of this tool with these arguments, or None."""
        if not self._any or tool.final is not None or (tool.run or {}).get("builtin") == "load_skill":
            return None
        stream = Stream("fault", self._seed, request_id, tool.name, json.dumps(args, sort_keys=True))
        kind = self._kind(stream.unit())
        persists = stream.chance(self.rates.persist)
        if kind is None or (number > 0 and not persists):
            return None
        if kind == "stale" and tool.effect == "write":
            return None  # what was just written is not old, and making it again would be wrong
        return _fault(kind, tool, args, stream)

    def _kind(self, drawn: float) -> str | None:
        for kind, share in self._shares:
            if drawn < share:
                return kind
            drawn -= share
        return None


def _fault(kind: str, tool: Tool, args: dict[str, Any], stream: Stream) -> InjectedFault:
    if kind == "timeout":
        return InjectedFault(kind=kind, status="timeout", error=stream.choice(_TIMEOUTS))
    if kind == "malformed":
        return InjectedFault(kind=kind, status="error", error=_misfit(tool, stream))
    if kind == "denied":
        return InjectedFault(kind=kind, status="denied", error=stream.choice(_DENIED))
    return InjectedFault(kind=kind, change=_aged(args, stream))


def _misfit(tool: Tool, stream: Stream) -> str:
    """The sentence that the runtime has for an answer that does not fit the tool's result."""
    required: Sequence[str] = (tool.result or {}).get("required") or ()
    if required:
        where, problem = f"/{stream.choice(required)}", '"<html>" is not of the type that it must be'
    else:
        where, problem = "the result", "it is cut off in the middle"
    return f"the tool's result does not fit its schema: {where}: {problem}"


def _aged(args: dict[str, Any], stream: Stream) -> Callable[[Any], Any]:
    """An answer as it was some time ago. Ids and what the caller said are as they are now."""
    said = {value for value in args.values() if isinstance(value, int | float)}
    age, factor = stream.choice(_AGES_MIN), stream.choice(_MOVED)

    def moved(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: moved(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [moved(item, key) for item in value]
        if isinstance(value, bool) or not isinstance(value, int | float) or _is_id(key) or value in said:
            return value
        return max(0, round(value * factor)) if isinstance(value, int) else round(value * factor, 2)

    def change(result: Any) -> Any:
        mark = {STALE: True, "as_of": f"{age} minutes ago"}
        return mark | (moved(result, "") if isinstance(result, dict) else {"result": moved(result, "")})

    return change


def _is_id(key: str) -> bool:
    return key in ("id", "ids", "link", "links", "now", "waiting") or key.endswith(("_id", "_ids"))
