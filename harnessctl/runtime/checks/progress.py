"""skill_loaded, tool_called, tool_order: checks of what has been done so far."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from harnessctl.errors import HookError
from harnessctl.manifests.specs.hooks import SkillLoadedCheck, ToolCalledCheck, ToolOrderCheck
from harnessctl.records.trajectory import ToolCall
from harnessctl.runtime.checks.check import PASSED, Check, Moment, Outcome, Setting, read_spec
from harnessctl.runtime.names import finished_calls

_MISSING = object()


def compile_skill_loaded(raw: Any, setting: Setting) -> Check:
    """One loaded skill has the name and the kind that are given."""
    spec = read_spec(raw, SkillLoadedCheck)
    if spec.skill is None and spec.kind is None:
        raise HookError("skill_loaded: neither a skill nor a kind is given")
    wanted = f"skill `{spec.skill}`" if spec.skill else f"{spec.kind} skill"
    failed = Outcome(ok=False, reason=f"no {wanted} has been loaded" if spec.kind else f"{wanted} has not been loaded")

    def test(moment: Moment) -> Outcome:
        for skill in moment.scene.skills:
            if spec.skill in (None, skill.name) and spec.kind in (None, skill.kind):
                return PASSED
        return failed

    return Check(test=test)


def compile_tool_called(raw: Any, setting: Setting) -> Check:
    """Calls that fit every given condition number between `min` and `max`.

    Finished calls only, blocked ones too unless `ok` is true. An argument under `same_args` that is missing from
    either call makes them differ.
    """
    spec = read_spec(raw, ToolCalledCheck)
    names = _names(spec, setting)
    same = _same_args(spec.same_args, setting)
    what = " or ".join(f"`{name}`" for name in spec.tools) or f"a tool tagged {' or '.join(spec.tags) or 'anything'}"

    def test(moment: Moment) -> Outcome:
        count = 0
        for call in finished_calls(moment.scene, spec.scope):
            if (
                call.name in names
                and (spec.ok is None or spec.ok is (call.status == "ok"))
                and (same is None or same(call, moment.scene.args))
            ):
                count += 1
        if count >= spec.min and (spec.max is None or count <= spec.max):
            return PASSED
        bound = f"at least {_times(spec.min)}" if count < spec.min else f"at most {_times(spec.max or 0)}"
        return Outcome(ok=False, reason=f"{what} was called {_times(count)}; {bound} is needed")

    return Check(test=test)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _names(spec: ToolCalledCheck, setting: Setting) -> frozenset[str]:
    """The tools that fit by name and tag, which never change."""
    unknown = [name for name in spec.tools if name not in setting.tools]
    if unknown:
        raise HookError(f"tool_called: there is no tool {', '.join(f'`{name}`' for name in unknown)}")
    tags = set(spec.tags)
    return frozenset(
        tool.name
        for tool in setting.tools.values()
        if (not spec.tools or tool.name in spec.tools) and (not tags or not tags.isdisjoint(tool.tags))
    )


def _same_args(wanted: list[str] | bool, setting: Setting) -> Callable[[ToolCall, dict[str, Any]], bool] | None:
    """Whether a call's arguments equal those of the call under way: all of them, or the named ones."""
    if not wanted:
        return None
    if setting.event not in ("pre_tool", "post_tool"):
        raise HookError(f"same_args: no call is under way at {setting.event}")
    if wanted is True:
        return lambda call, args: call.arguments == args
    names = wanted

    def same(call: ToolCall, args: dict[str, Any]) -> bool:
        return all(name in args and call.arguments.get(name, _MISSING) == args[name] for name in names)

    return same


def compile_tool_order(raw: Any, setting: Setting) -> Check:
    """The first successful calls of the named tools stand in the order given.

    A tool that has not succeeded yet is passed over, so the check says nothing on whether a tool was called. At
    pre_tool and post_tool the call under way counts as the last one (at post_tool if it succeeded).
    """
    spec = read_spec(raw, ToolOrderCheck)
    unknown = [name for name in spec.order if name not in setting.tools]
    if unknown:
        raise HookError(f"tool_order: there is no tool {', '.join(f'`{name}`' for name in unknown)}")
    rank = {name: index for index, name in enumerate(spec.order)}

    def under_way(moment: Moment) -> bool:
        return moment.event == "pre_tool" or (moment.event == "post_tool" and moment.scene.status == "ok")

    def test(moment: Moment) -> Outcome:
        scene = moment.scene
        seen: dict[str, None] = {}
        for call in finished_calls(scene, spec.scope):
            if call.status == "ok" and call.name in rank:
                seen.setdefault(call.name)
        if under_way(moment) and scene.tool is not None and scene.tool.name in rank:
            seen.setdefault(scene.tool.name)
        order = list(seen)
        for earlier, later in itertools.pairwise(order):
            if rank[earlier] > rank[later]:
                return Outcome(ok=False, reason=f"`{later}` must come before `{earlier}`")
        return PASSED

    return Check(test=test)


CHECKS = {
    "skill_loaded": compile_skill_loaded,
    "tool_called": compile_tool_called,
    "tool_order": compile_tool_order,
}
