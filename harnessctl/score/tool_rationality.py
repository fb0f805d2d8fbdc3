"""Tool Rationality: whether the right calls were made, with the right arguments, and no others, in [0, 1] [3.4].

    T = (hit - late/2 + [none due]) / (due + [none due] + wasted)

`due` counts gold's calls, or those of the alternative that fits best; `hit` those that were made with the arguments that
are compared; `late` those of them that came after a call that writes though gold has them before it; `wasted` counts
all other calls: unknown tools, arguments that do not fit, calls that a hook blocked, repeats, and calls that nothing asked
for. Free are: gold's optional calls and the prelude that hooks demand, once each; a call that an injected fault spoiled,
and making it again; due calls that nobody made where one was lost that others were to follow (see `losses`);
loading a skill, which Skill Selection judges. No call due and none made is 1.

The paper names the criteria ('logically sound and efficiently structured (no redundant calls, correct parameter usage)')
and leaves the grade to a judge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import orjson

from harnessctl.records.scenario import Gold, GoldCall, Scenario
from harnessctl.records.trajectory import ToolCall, Trajectory
from harnessctl.score.calls import align, compared, plans
from harnessctl.score.losses import is_cut_off, lost_calls


def tool_rationality(
    trajectory: Trajectory, scenario: Scenario, *, writes: Collection[str] = ()
) -> tuple[float, list[str]]:
    """The score and what cost something. `writes` names the tools that write; `scenario` has gold."""
    gold = scenario.gold
    assert gold is not None
    is_cut = is_cut_off(gold, lost_calls(trajectory))
    found = (_of_plan(trajectory.tools, due, gold, writes, is_cut=is_cut) for due in plans(gold))
    return max(found, key=lambda graded: graded[0])


def _of_plan(
    made: Sequence[ToolCall], due: Sequence[GoldCall], gold: Gold, writes: Collection[str], *, is_cut: bool
) -> tuple[float, list[str]]:
    alignment = align(made, due, gold)
    late = alignment.late(writes)
    missing: list[GoldCall] = [] if is_cut else alignment.missing
    nothing = 0 if due else 1
    hit = len(due) - len(missing) - len(late) / 2 + nothing
    reasons = [f"{_shown(call)} was not called" for call in missing]
    reasons += [f"{_shown(call)} came after the call that it should come before" for call in late]
    return hit / (len(due) + nothing + len(alignment.wasted)), reasons + alignment.wasted


def _shown(call: GoldCall) -> str:
    return f"`{call.tool}` with {orjson.dumps({name: call.arguments.get(name) for name in compared(call)}).decode()}"
