"""Tool calls of one round: checked, let through by hooks, run, and answered in the order of the calls.

What always holds: every call that the model made has a record and, unless the request was cut off, a result message.
Calls run in parallel within `max_parallel_tools`; a call that writes, ends the loop or loads a skill runs alone, after
the calls before it, so that its hooks see their results.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from harnessctl.bundle.state import Skill, Tool
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.ending import Ending, ending_of
from harnessctl.runtime.final import Final, final_of
from harnessctl.runtime.hooks import HookSet
from harnessctl.runtime.names import copied
from harnessctl.runtime.notices import NOT_LET, NOT_RUN, WITHHELD, Notices
from harnessctl.runtime.outside import clean_json
from harnessctl.runtime.pending import PendingCall
from harnessctl.runtime.protocols import FaultSource, ToolContext
from harnessctl.runtime.request import RequestRun
from harnessctl.runtime.scene import PASS, Verdict
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tools.outcome import ToolOutcome
from harnessctl.runtime.tools.toolset import ToolSet


class ToolCaller:
    """Carries out tool calls for one bundle."""

    def __init__(
        self,
        surface: SurfaceView,
        tools: ToolSet,
        hooks: HookSet,
        notices: Notices,
        clock: Clock,
        *,
        faults: FaultSource | None = None,
    ) -> None:
        self._faults = faults
        self._surface = surface
        self._tools = tools
        self._hooks = hooks
        self._notices = notices
        self._clock = clock
        self._skills: dict[str, Skill] = {skill.name: skill for skill in surface.state.skills}
        self._default_timeout = float(surface.limits["tool_timeout_s"])
        self._parallel = int(surface.limits["max_parallel_tools"])
        self._has_pre = hooks.has("pre_tool")
        self._has_post = hooks.has("post_tool")

    async def run(self, run: RequestRun, calls: list[PendingCall]) -> Ending | Final | None:
        """Answer all calls of one message; an Ending or a Final when the request ends with one of them."""
        outcome: Ending | Final | None = None
        after: list[dict[str, Any]] = []
        for group in self._groups(calls):
            run.pending = group
            for pending in group:
                if outcome is None:
                    outcome = await self._admit(run, pending, after)
                else:
                    pending.skip(NOT_RUN)
            await self._run_group(run, group)
            for pending in group:
                if pending.is_skipped:
                    self._answer(run, pending)
                else:
                    ended = await self._finish(run, pending, after)
                    outcome = outcome or ended
        run.messages += after
        return outcome

    def refuse_all(self, run: RequestRun, calls: list[PendingCall], reason: str) -> None:
        """Answer all calls with `reason`; none is run."""
        for pending in calls:
            pending.refuse("blocked", reason)
            self._answer(run, pending)

    def _groups(self, calls: list[PendingCall]) -> list[list[PendingCall]]:
        """The calls in runs of those that may run beside each other."""
        if len(calls) == 1:
            return [calls]
        groups: list[list[PendingCall]] = []
        is_open = False
        for pending in calls:
            alone = self._parallel == 1 or self._runs_alone(pending.tool)
            if is_open and not alone:
                groups[-1].append(pending)
            else:
                groups.append([pending])
            is_open = not alone
        return groups

    def _runs_alone(self, tool: Tool | None) -> bool:
        return tool is not None and (
            tool.effect == "write" or tool.final is not None or tool is self._surface.load_skill
        )

    async def _admit(self, run: RequestRun, pending: PendingCall, after: list[dict[str, Any]]) -> Ending | None:
        """Repeats, schema and pre_tool hooks; a call that stays without a status is to be run."""
        if run.repeats.repeats(pending.name, pending.raw if pending.raw is not None else pending.args):
            pending.skip(self._notices.repeated(pending.name))
            return Ending("repeat_detected", error=f"{pending.name} was called again with the same arguments")
        if pending.status is not None or pending.tool is None:
            return None
        fault = self._fault(pending)
        if fault is not None:
            pending.refuse("invalid", fault)
        elif self._has_pre:
            return await self._pre_tool(run, pending, after)
        return None

    def _fault(self, pending: PendingCall) -> str | None:
        """What is wrong with the arguments, as the model reads it."""
        if pending.tool is self._surface.load_skill:
            skill = pending.args.get(self._surface.load_skill_argument)
            if not isinstance(skill, str) or skill not in self._skills:
                return self._notices.unknown_skill(skill)
        return self._tools.check_arguments(pending.name, pending.args)

    async def _pre_tool(self, run: RequestRun, pending: PendingCall, after: list[dict[str, Any]]) -> Ending | None:
        scene = run.scene
        scene.tool, scene.args, scene.result, scene.status = pending.tool, pending.args, None, None
        verdict = await self._hooks.run("pre_tool", scene)
        if scene.args is not pending.args:
            pending.args = scene.args
            fault = self._fault(pending)
            if fault is not None:
                pending.refuse("invalid", fault)
        scene.tool = None
        if verdict is PASS:
            return None
        if verdict.action in ("block", "retry"):
            _refuse(pending, verdict, NOT_LET, after)
            return None
        ending = ending_of(verdict, "pre_tool")
        if ending is not None:
            pending.skip(verdict.message or NOT_RUN)
        return ending

    async def _run_group(self, run: RequestRun, group: list[PendingCall]) -> None:
        if len(group) == 1:
            if group[0].status is None:
                await self._run_one(run, group[0])
            return
        ready = [pending for pending in group if pending.status is None]
        if ready:
            slots = asyncio.Semaphore(self._parallel)

            async def run_in_slot(pending: PendingCall) -> None:
                async with slots:
                    await self._run_one(run, pending)

            await asyncio.gather(*(run_in_slot(pending) for pending in ready))

    async def _run_one(self, run: RequestRun, pending: PendingCall) -> None:
        tool, scene = pending.tool, run.scene
        assert tool is not None
        pending.started_s = self._clock.monotonic() - scene.started
        if tool is self._surface.load_skill:
            self._load_skill(run, pending)
        elif tool.final is not None and tool.run is None and tool.simulate is None:
            pending.status, pending.content = "ok", "ok"
        else:
            context = run.tool_context or _tool_context(run)
            if self._faults is None:
                outcome = await self._tools.call(tool, pending.args, context, self._default_timeout)
            else:
                outcome = await self._call_or_fault(self._faults, run, tool, pending.args, context)
            pending.status, pending.result, pending.error = outcome.status, outcome.result, outcome.error
            pending.attempts, pending.fault = outcome.attempts, outcome.fault
            if outcome.status == "ok":
                pending.content = self._read(run, pending, outcome.result)
                if tool.effect == "write":
                    run.repeats.wrote(tool.name)
            else:
                error = self._surface.shown(outcome.error) if outcome.error else outcome.status
                pending.content = f"error: {self._read(run, pending, error)}"
        pending.ended_s = self._clock.monotonic() - scene.started

    async def _call_or_fault(
        self, faults: FaultSource, run: RequestRun, tool: Tool, args: dict[str, Any], context: ToolContext
    ) -> ToolOutcome:
        """What the call comes to where a simulator may put a fault in its place."""
        call = (tool.name, orjson.dumps(args, option=orjson.OPT_SORT_KEYS))
        number = run.drawn.get(call, 0)
        run.drawn[call] = number + 1
        fault = faults.draw(run.request.id, tool, args, number)
        if fault is not None and fault.change is None:
            return ToolOutcome(status=fault.status, error=fault.error, fault=fault.kind)
        outcome = await self._tools.call(tool, args, context, self._default_timeout)
        if fault is not None and fault.change is not None and outcome.status == "ok":
            outcome.result, outcome.fault = fault.change(outcome.result), fault.kind
        return outcome

    def _load_skill(self, run: RequestRun, pending: PendingCall) -> None:
        """A skill's body enters the context once; a second load says so."""
        skill = self._skills[pending.args[self._surface.load_skill_argument]]
        loaded = run.scene.skills
        is_new = skill not in loaded
        if is_new:
            loaded.append(skill)
            pending.content = self._surface.skill_body(skill.name)
        else:
            pending.content = self._notices.already_loaded(skill.name)
        pending.status = "ok"
        pending.result = {"skill": skill.name, "loaded": is_new}

    async def _finish(
        self, run: RequestRun, pending: PendingCall, after: list[dict[str, Any]]
    ) -> Ending | Final | None:
        """post_tool hooks, the result message and the record. A final tool that a hook sends back ends nothing."""
        ending: Ending | None = None
        verdict = PASS
        if self._has_post and pending.tool is not None:
            verdict = await self._post_tool(run, pending)
            if verdict.action == "block":
                pending.result = None
                _refuse(pending, verdict, WITHHELD, after)
            elif verdict.action == "retry" and verdict.role == "tool":
                pending.content = f"{pending.content}\n\n{verdict.message}"
            elif verdict.action == "retry":
                after.append({"role": verdict.role, "content": verdict.message})
            elif verdict is not PASS:
                ending = ending_of(verdict, "post_tool")
        self._answer(run, pending)
        if ending is not None:
            return ending
        tool = pending.tool
        if tool is None or tool.final is None or pending.status != "ok" or verdict.action == "retry":
            return None
        return final_of(pending)

    async def _post_tool(self, run: RequestRun, pending: PendingCall) -> Verdict:
        """The hooks' verdict; a result that they rewrote has been taken over."""
        scene = run.scene
        scene.tool, scene.args, scene.result = pending.tool, pending.args, pending.result
        scene.status = pending.status
        verdict = await self._hooks.run("post_tool", scene)
        if scene.result is not pending.result:
            pending.result = scene.result
            pending.content = self._read(run, pending, scene.result)
        scene.tool = None
        return verdict

    def _read(self, run: RequestRun, pending: PendingCall, value: Any) -> str:
        """A result or an error as the model reads it: cleaned, since reviews and pages come in through tools."""
        return clean_json(value, run.scene.warnings, f"result of {pending.name}")

    def _answer(self, run: RequestRun, pending: PendingCall) -> None:
        run.messages.append({"role": "tool", "tool_call_id": pending.id, "content": pending.content})
        run.scene.calls.append(pending.record(run.scene.round))
        pending.is_answered = True


def _refuse(pending: PendingCall, verdict: Verdict, notice: str, after: list[dict[str, Any]]) -> None:
    """Refuse a call by a hook: the result is the hook's message, or `notice` where the message is said apart from it."""
    pending.refuse("blocked", verdict.message)
    if verdict.role != "tool":
        pending.content = notice
        after.append({"role": verdict.role, "content": verdict.message})


def _tool_context(run: RequestRun) -> ToolContext:
    """What the request's tools share, made for its first call: copies, so that no tool changes the record or the limits."""
    scene = run.scene
    run.tool_context = ToolContext(
        context=_copied_json(scene.context) if scene.context else {},
        session=scene.session.tools,
        world=scene.world,
        limits=dict(scene.limits),
        deadline=scene.deadline,
    )
    return run.tool_context


def _copied_json(context: dict[str, Any]) -> dict[str, Any]:
    """A copy of a context, which is JSON; by way of its text, several times as fast as member by member."""
    try:
        return orjson.loads(orjson.dumps(context))
    except TypeError:  # an integer beyond 64 bits
        return copied(context)
