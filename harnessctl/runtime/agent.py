"""Agent: one bundle and one model, ready to answer requests [2.2, 2.4].

A request: context -> input hooks -> prompt -> rounds -> stop hooks -> route -> record. `run` gives a Trajectory for
every request, whatever goes wrong in it: a bad context, a failing hook, tool or model, the deadline. Requests may run
concurrently; turns of one session wait for each other.

How what goes wrong is recorded: a context or a prompt that cannot be made ends as `hook_blocked` with `error` (input
checks are lifecycle checks in the paper), a fault of the runtime itself as `model_error` with `error`.
Cancellation: when the task that awaits `run` is cancelled, the record (stop `cancelled`) is given to `on_cancelled`
and CancelledError goes on, so that the caller's own cancellation works as everywhere in asyncio.
Deadline: `deadline_s` bounds the request from its start (from its turn, in a session). What cannot be interrupted is
Python that does not wait: a model, a hook or a tool that computes on the event loop holds it until it is done.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Self, cast

import msgspec

from harnessctl.bundle import Bundle
from harnessctl.errors import BundleError, HarnessctlError, UsageError
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.checks.check import Judge
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.code import Code
from harnessctl.runtime.context import ContextError, ContextReader
from harnessctl.runtime.deadline import within
from harnessctl.runtime.ending import Ending, ending_of
from harnessctl.runtime.foreign import is_cancelled
from harnessctl.runtime.hooks import HookSet
from harnessctl.runtime.loop import Loop, loop_state
from harnessctl.runtime.model_call import ModelCaller
from harnessctl.runtime.notices import Notices
from harnessctl.runtime.prompt import PromptError
from harnessctl.runtime.protocols import FaultSource, Model, Sampling, SandboxedWorld, World
from harnessctl.runtime.request import RequestRun
from harnessctl.runtime.round import Rounds
from harnessctl.runtime.scene import Scene, SessionState
from harnessctl.runtime.session import SessionStore
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tool_calls import ToolCaller
from harnessctl.runtime.tools.toolset import ToolSet
from harnessctl.runtime.turn import Turns
from harnessctl.runtime.viewer import clean_messages, recordable_request

_log = logging.getLogger(__name__)


class Agent:
    """Answers requests with `bundle` and `model`. `tools` and `hooks` belong to `loop_state(bundle, loop, limits)`.

    `Agent.open` makes them; the constructor is for callers that bring their own. The model and the world are the
    caller's: `aclose` leaves them open.
    """

    def __init__(
        self,
        bundle: Bundle,
        model: Model,
        *,
        tools: ToolSet,
        hooks: HookSet,
        surface: SurfaceView | None = None,
        world: World | None = None,
        sampling: Sampling | None = None,
        loop: Loop = "harness",
        seed: int = 0,
        insist: bool = False,
        isolate: bool = False,
        sessions: SessionStore | None = None,
        clock: Clock | None = None,
        faults: FaultSource | None = None,
    ) -> None:
        self.bundle = bundle
        self.model = model
        self.loop: Loop = loop
        self.surface = surface or SurfaceView(loop_state(bundle, loop))
        self.state = self.surface.state
        self.sessions = sessions or SessionStore()
        self._tools = tools
        self._hooks = hooks
        self._world = world
        self._isolated: SandboxedWorld | None = None
        if isolate and world is not None:
            if not hasattr(world, "sandbox"):
                raise UsageError("requests cannot be isolated in a world without sandboxes")
            self._isolated = cast("SandboxedWorld", world)
        self._sampling = sampling or Sampling()
        self._seed = seed
        self._clock = clock or Clock()
        missing = sorted(DEFAULT_LIMITS.keys() - self.surface.limits.keys())
        if missing:
            raise BundleError(
                f"bundle {bundle.name}: limits are missing: {', '.join(missing)}", hint="compile it again"
            )
        notices = Notices(self.surface)
        self._context = ContextReader(self.state.prompt)
        self._turns = Turns(self.surface, model.name, self._clock)
        self._rounds = Rounds(
            self.surface,
            ModelCaller(model, self.surface, self._clock),
            ToolCaller(self.surface, tools, hooks, notices, self._clock, faults=faults),
            hooks,
            notices,
            self._clock,
            insist=insist,
        )
        self._recorded_sampling: dict[str, Any] = msgspec.to_builtins(self._sampling) | (
            {"insist": True} if insist else {}
        )
        self._seeds = {"agent": seed} | ({} if self._sampling.seed is None else {"sampling": self._sampling.seed})
        self._has_input = hooks.has("input")
        self._has_end = hooks.has("end")

    @classmethod
    async def open(
        cls,
        bundle: Bundle,
        model: Model,
        *,
        world: World | None = None,
        loop: Loop = "harness",
        limits: Mapping[str, int | float] | None = None,
        simulate: bool = False,
        judge: Judge | None = None,
        env: Mapping[str, str] | None = None,
        sampling: Sampling | None = None,
        seed: int = 0,
        insist: bool = False,
        isolate: bool = False,
        sessions: SessionStore | None = None,
        clock: Clock | None = None,
        faults: FaultSource | None = None,
        surface: SurfaceView | None = None,
    ) -> Self:
        """An agent with its tools connected and its hooks loaded; close it with `aclose` or `async with`.

        `limits` replaces effective limits by name, in the texts that cite them too. `simulate` runs the tools'
        sandboxed replicas. `env` is where tools read `${NAME}` from, by default the process's environment. `insist` makes
        a model load a skill, until a Reply Skill is loaded, where the harness requires one: for models that would not by
        themselves. `isolate` gives each request, or each session, a sandbox of the world, which must have them.
        `faults` puts faults in the place of tools' answers, for simulations. `surface` is one of
        `loop_state(bundle, loop, limits)` that was made already.
        """
        surface = surface or SurfaceView(loop_state(bundle, loop, limits))
        state = surface.state
        code = Code(bundle.digest, state.code)
        hooks = HookSet(state, code=code, surface=surface, judge=judge, clock=clock)
        tools = ToolSet(
            state,
            code=code,
            surface=surface,
            simulate=simulate,
            env=os.environ if env is None else env,
            clock=clock,
        )
        try:
            await tools.open()
            return cls(
                bundle,
                model,
                tools=tools,
                hooks=hooks,
                surface=surface,
                world=world,
                sampling=sampling,
                loop=loop,
                seed=seed,
                insist=insist,
                isolate=isolate,
                sessions=sessions,
                clock=clock,
                faults=faults,
            )
        except BaseException:
            await tools.aclose()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    @property
    def warnings(self) -> list[str]:
        """What was found when the agent was opened, a server's changed tools for example."""
        return self._tools.warnings

    async def aclose(self) -> None:
        """Wait for observers (of a run that is cancelled: end them) and disconnect the tools."""
        if is_cancelled():
            self._hooks.cancel_observers()
        await self._hooks.drain()
        await self._tools.aclose()

    async def run(
        self,
        request: CommentInput,
        *,
        deadline: float | None = None,
        world: World | None = None,
        on_cancelled: Callable[[Trajectory], None] | None = None,
    ) -> Trajectory:
        """Carry one request through; see the module's docstring for what may happen.

        `deadline`, on the clock's monotonic time, ends it before `deadline_s` has passed. `world` takes the place of the
        agent's (a sandbox whose tables the caller wants to see afterwards); it stays open.
        """
        run = self._begin(request, deadline, world)
        try:
            if run.session is None:
                ending = await self._end(run)
            else:
                async with run.session.lock:
                    self._turns.resume(run)
                    try:
                        ending = await self._end(run)
                    finally:
                        if run.session.world is not None:
                            run.session.world.rest()
                    self._turns.leave(run, ending)
        except asyncio.CancelledError:
            if on_cancelled is not None:
                on_cancelled(self._record(run, Ending("cancelled")))
            raise
        finally:
            if run.world is not None:
                run.world.close()
        return self._record(run, ending)

    def restore(self, turn: Trajectory) -> None:
        """Take up a recorded turn of a session, so that the next one goes on from there; turns in their order."""
        if turn.session is not None:
            self._turns.restore(self.sessions.get(turn.session), turn)

    def _begin(self, request: CommentInput, deadline: float | None, world: World | None) -> RequestRun:
        """The request's state. Nothing here depends on what may fail."""
        now = self._clock.monotonic()
        limits = self.surface.limits
        warnings = list(self._tools.warnings)
        messages = clean_messages(request, int(limits["max_message_chars"]), warnings)
        scene = Scene(
            request=request,
            context={},
            limits=limits,
            session=SessionState(),
            world=self._world if world is None else world,
            started=now,
            deadline=now + limits["deadline_s"] if deadline is None else min(deadline, now + limits["deadline_s"]),
            message=messages[0]["text"] if len(messages) == 1 else "\n".join(m["text"] for m in messages),
            warnings=warnings,
        )
        session = self.sessions.get(request.session) if request.session is not None else None
        return RequestRun(
            request,
            scene,
            session,
            viewer_messages=messages,
            sampling=self._sampling,
            seed=self._seed,
            deadline=deadline,
            started_at=self._clock.now().isoformat(),
        )

    async def _end(self, run: RequestRun) -> Ending:
        """How the request ends, after its `end` hooks."""
        scene = run.scene
        left = scene.deadline - self._clock.monotonic()
        try:
            ending = await within(self._steps(run), left)
        except TimeoutError:  # nothing below lets its own time-outs out
            bound = "the deadline that was set" if run.deadline else f"deadline_s of {scene.limits['deadline_s']} s"
            ending = Ending("deadline", error=f"{bound} had passed")
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            ending = Ending("model_error", error="fault in the runtime: something in the request cancelled itself")
        except Exception as error:  # a fault of the runtime's own must not take other requests with it
            _log.exception("request %s failed inside the runtime", run.request.id)
            ending = Ending("model_error", error=f"fault in the runtime: {type(error).__name__}: {error}")
        scene.reply = ending.reply
        if self._has_end:
            await self._hooks.run("end", scene)
        return ending

    async def _steps(self, run: RequestRun) -> Ending:
        scene, request = run.scene, run.request
        try:
            if self._isolated is not None and scene.world is self._world:
                scene.world = self._copy_of(self._isolated, run)
            scene.context = self._context.read(request, scene.world, scene.warnings)
        except ContextError as error:
            return Ending("hook_blocked", error=str(error))
        if run.session is not None and scene.session.turns >= scene.limits["max_turns"]:
            return Ending("round_limit", error=f"the session has had its {scene.limits['max_turns']} turns (max_turns)")
        told = ""
        if self._has_input:
            said = scene.message
            verdict = await self._hooks.run("input", scene)
            ending = ending_of(verdict, "input")
            if ending is not None:
                return ending
            told = verdict.message if verdict.action == "retry" else ""
            if scene.message is not said:
                run.viewer_messages = [{**run.viewer_messages[0], "text": scene.message}]
        try:
            self._turns.assemble(run)
        except PromptError as error:
            return Ending("hook_blocked", error=error.message)
        if told:
            run.messages.append({"role": "user", "content": told})
        return await self._rounds.run(run)

    def _copy_of(self, world: SandboxedWorld, run: RequestRun) -> World:
        """The request's own copy of the world, or its session's. ContextError when none can be made."""
        held = run if run.session is None else run.session
        if held.world is None:
            try:
                held.world = world.sandbox()
            except HarnessctlError as error:
                raise ContextError(f"context: the world failed: {error.message}") from error
        return held.world

    def _record(self, run: RequestRun, ending: Ending) -> Trajectory:
        scene = run.scene
        return Trajectory(
            id=run.request.id,
            bundle=self.bundle.digest,
            harness=self.bundle.name,
            loop=self.loop,
            model=self.model.name,
            request=recordable_request(run.request),
            context=scene.context,
            limits=scene.limits,
            started=run.started_at,
            took_s=self._clock.monotonic() - scene.started,
            stop=ending.stop,
            reply=ending.reply,
            route=ending.route,
            world=scene.world.digest if scene.world is not None else None,
            template=self.model.template,
            prompt=run.prompt_digest,
            messages=run.messages,
            calls=run.calls,
            tools=scene.calls + [p.record(scene.round) for p in run.pending if not p.is_answered],
            hooks=scene.decisions,
            skills=[skill.name for skill in scene.skills],
            paths=run.paths.paths,
            sampling=self._recorded_sampling,
            seeds=self._seeds,
            session=run.request.session,
            turn=run.turn,
            error=ending.error,
            warnings=scene.warnings,
        )
