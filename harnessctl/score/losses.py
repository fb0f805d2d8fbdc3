"""Losses: the calls that injected faults kept from ever giving an answer, which no agent is to blame for.

A call is lost when it was made, a fault spoiled it every time, and trying once more was done, was pointless (it was
denied, or there is no such data), or would have left no round for the reply.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from harnessctl.records.scenario import Gold
from harnessctl.records.trajectory import ToolCall, Trajectory
from harnessctl.score.calls import equal_call, plans

#: Answers, and faults, that another try does not change.
_FINAL = frozenset({"denied"})
_FINAL_FAULTS = frozenset({"missing"})


def lost_calls(trajectory: Trajectory) -> list[ToolCall]:
    """The last try of each call that was lost."""
    if not any(call.fault is not None for call in trajectory.tools):
        return []
    last_round = trajectory.limits.get("max_rounds", float("inf")) - 1
    return [
        tries[-1]
        for tries in _grouped(trajectory.tools)
        if all(call.fault is not None for call in tries)
        and (
            len(tries) > 1
            or tries[0].status in _FINAL
            or tries[0].fault in _FINAL_FAULTS
            or tries[-1].round >= last_round
        )
    ]


def is_cut_off(gold: Gold, lost: Sequence[ToolCall]) -> bool:
    """Whether a call was lost that others were to follow, so that hooks may have let none of them through."""
    first = [*gold.prelude, *(call for plan in plans(gold) for call in plan[:-1])]
    return any(equal_call(call, before) for call in lost for before in first)


def _grouped(calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    """The calls that reached their tool, equal ones together, in their order."""
    found: dict[tuple[str, bytes], list[ToolCall]] = {}
    for call in calls:
        if call.status not in ("invalid", "blocked"):
            key = call.name, orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS)
            found.setdefault(key, []).append(call)
    return list(found.values())
