"""Hooks: everything that a bundle's hooks do at the points of a request.

What always holds: `run` raises nothing but cancellation; every hook that looked at an event left a HookDecision; a hook
that could not be made or could not run is named there, acts by its `on_error`, and stands in no other hook's way. Hooks
run in the bundle's order. The first that decides anything but to pass ends the event for those after it; observers are
told all the same, and decide nothing.

At `end` nothing can be undone, so that every action warns. The scene given to `run` must be one that nobody else changes
meanwhile. A hook is bounded by its own time-out; that the request's deadline has come is for the loop to see.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from harnessctl.bundle.state import HarnessState, Hook
from harnessctl.errors import HookError
from harnessctl.manifests.specs.hooks import Observe
from harnessctl.records.trajectory import HookDecision
from harnessctl.runtime.actions import Actor, recordable
from harnessctl.runtime.checks import compile_check
from harnessctl.runtime.checks.check import PASSED, Check, Moment, Outcome, Setting, Test, ask, read_spec
from harnessctl.runtime.checks.command import command_call
from harnessctl.runtime.checks.judge import Judge
from harnessctl.runtime.checks.python import python_call
from harnessctl.runtime.checks.waiting import describe
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.code import Code
from harnessctl.runtime.layout import Layout
from harnessctl.runtime.scene import PASS, Scene, Verdict
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.when import Condition, compile_when

log = logging.getLogger("harnessctl.hooks")

_FAILED = Outcome(ok=False)


def _always(moment: Moment) -> Outcome:
    """The check of an unconditional hook, which never passes."""
    return _FAILED


@dataclass(slots=True)
class _Runner:
    """One hook, compiled. `observe` is set for an observer, `check` for any other."""

    id: str
    timeout_s: float
    blocks_on_error: bool
    actor: Actor
    check: Check
    when: Condition | None = None
    observe: Callable[[Moment], Awaitable[Any]] | None = None


class HookSet:
    """The hooks of one bundle, compiled once and used by every request.

    `judge` runs judge checks; without one each of them is a HookError.
    """

    def __init__(
        self,
        state: HarnessState,
        *,
        code: Code,
        surface: SurfaceView,
        judge: Judge | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._perf = (clock or Clock()).perf
        self._tools = {tool.name: tool for tool in state.tools}
        self._observers: set[asyncio.Task[None]] = set()
        self._by_event: dict[str, list[_Runner]] = {}
        layout = Layout(state.files)
        for hook in state.hooks:
            setting = Setting(hook.id, hook.event, state, self._tools, code, layout, judge)
            self._by_event.setdefault(hook.event, []).append(_compile(hook, setting, surface))

    def has(self, event: str) -> bool:
        """Whether any hook looks at this event."""
        return event in self._by_event

    async def run(self, event: str, scene: Scene) -> Verdict:
        """What the hooks of `event` decide together. Rewrites have been applied to the scene when this returns."""
        verdict = PASS
        hooks = self._by_event.get(event)
        if hooks is None:
            return verdict
        moment = Moment(event, scene, self._tools)
        tool = scene.tool.name if scene.tool is not None else None
        for hook in hooks:
            if verdict is not PASS and hook.observe is None:
                continue
            begun = self._perf()
            decision = HookDecision(
                hook=hook.id, event=event, round=scene.round, decision="pass", took_s=0.0, tool=tool
            )
            try:
                if hook.when is not None and not hook.when(moment):
                    continue
                scene.decisions.append(decision)
                if hook.observe is not None:
                    self._observe(hook, moment, decision)
                    continue
                if (test := hook.check.test) is not None:
                    outcome = test(moment)
                else:
                    moment.deadline = time.monotonic() + hook.timeout_s
                    outcome = await ask(hook.check, moment)
                if outcome is not PASSED:
                    verdict = hook.actor.decide(moment, outcome, decision)
            except asyncio.CancelledError:
                decision.decision = "error"
                decision.error = f"hook {hook.id}: the request ended before it had answered"
                raise
            except Exception as error:
                # Whatever goes wrong in a hook, ours or the project's fault, is named and stays in that hook.
                if not scene.decisions or scene.decisions[-1] is not decision:
                    scene.decisions.append(decision)
                verdict = _failed(hook, error, decision, verdict)
            decision.took_s = self._perf() - begun
        return verdict

    def cancel_observers(self) -> None:
        """Tell every observer of this event loop to end; `drain` waits until they have."""
        loop = asyncio.get_running_loop()
        for task in self._observers:
            if task.get_loop() is loop:
                task.cancel()

    async def drain(self) -> None:
        """Wait until every observer of this event loop has ended; each ends by its own time-out."""
        loop = asyncio.get_running_loop()
        while pending := [task for task in self._observers if task.get_loop() is loop]:
            await asyncio.wait(pending)

    def _observe(self, hook: _Runner, moment: Moment, decision: HookDecision) -> None:
        """Tell an observer of the event as it is now, beside the request."""
        decision.decision = "observed"
        scene = copy.copy(moment.scene)
        scene.calls, scene.skills, scene.retries = list(scene.calls), list(scene.skills), dict(scene.retries)
        seen = Moment(moment.event, scene, self._tools, deadline=time.monotonic() + hook.timeout_s)
        task = asyncio.get_running_loop().create_task(_observed(hook, seen, decision, self._perf))
        self._observers.add(task)
        task.add_done_callback(self._observers.discard)


def _compile(hook: Hook, setting: Setting, surface: SurfaceView) -> _Runner:
    """The hook, ready to run; one that cannot be made becomes a hook that fails each time with the cause."""
    when: Condition | None = None
    observe: Callable[[Moment], Awaitable[Any]] | None = None
    actor: Actor | None = None
    check, blocks_on_error = Check(test=_always), hook.on_error == "block"
    try:
        when = compile_when(hook.when, setting)
        if hook.observe is not None:
            observe = _observer(hook.observe, setting)
        else:
            actor = Actor(hook, hook.then or hook.otherwise, setting, surface)
            if hook.check is not None:
                check = compile_check(hook.check, setting)
    except Exception as error:
        # A hook's parts are the project's: whatever is wrong with them disables this hook and no other.
        check = Check(test=_broken(error if isinstance(error, HookError) else HookError(describe(error))))
        blocks_on_error = blocks_on_error and hook.observe is None
    if actor is None:
        actor = Actor(Hook(id=hook.id, event=hook.event), None, setting, surface)
    return _Runner(hook.id, hook.timeout_s, blocks_on_error, actor, check, when, observe)


def _broken(error: HookError) -> Test:
    def test(moment: Moment) -> Outcome:
        raise HookError(error.message, hint=error.hint)

    return test


def _observer(raw: dict[str, Any], setting: Setting) -> Callable[[Moment], Awaitable[Any]]:
    spec = read_spec(raw, Observe)
    if (spec.python is None) == (spec.command is None):
        raise HookError("observe: exactly one of python and command is given")
    return python_call(spec.python, setting) if spec.python is not None else command_call(raw["command"], setting)


async def _observed(hook: _Runner, moment: Moment, decision: HookDecision, perf: Callable[[], float]) -> None:
    """Run an observer; its failure goes into its decision, if the record is still open, and into the log."""
    begun = perf()
    try:
        assert hook.observe is not None
        await hook.observe(moment)
    except Exception as error:
        # An observer decides nothing, so that whatever goes wrong in it ends here.
        _failed(hook, error, decision, PASS)
        log.warning("%s", decision.error)
    decision.took_s = perf() - begun


def _failed(hook: _Runner, error: Exception, decision: HookDecision, verdict: Verdict) -> Verdict:
    """Record a hook that could not run; a block where it says so and nothing was decided before."""
    text = error.message if isinstance(error, HookError) else describe(error)
    if isinstance(error, HookError) and error.hint:
        text += f" ({error.hint})"
    decision.decision = "error"
    decision.error = recordable(f"hook {hook.id}: {text}")
    if hook.observe is not None or not hook.blocks_on_error or verdict is not PASS:
        return verdict
    return hook.actor.refuse()
