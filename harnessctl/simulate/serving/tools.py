"""Served tools: the sandbox tools of a harness, called from outside the agent loop.

What always holds: a tool is offered and called exactly as the harness shows it to a model; it runs as its sandboxed
replica where it has one, in a sandbox of the caller's session, within the tool's time-out; a call that fails is an outcome
and never an exception. Hooks do not look: they belong to the agent on the other side.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.bundle.state import Tool
from harnessctl.errors import UsageError
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.code import Code
from harnessctl.runtime.context import ContextError, ContextReader
from harnessctl.runtime.protocols import SandboxedWorld, ToolContext, World
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tools.outcome import ToolOutcome
from harnessctl.runtime.tools.toolset import ToolSet
from harnessctl.simulate.serving.sandboxes import Sandbox, Sandboxes

#: Calls under way at once; more wait.
MAX_CALLS = 32


class OfferedTool(msgspec.Struct, kw_only=True):
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: dict[str, Any]
    writes: bool


class ServedTools:
    """The tools of `bundle` over `world`. `request` says in which room and for whom they run."""

    def __init__(self, bundle: Bundle, world: SandboxedWorld | None, request: CommentInput) -> None:
        state = bundle.state
        self.surface = SurfaceView(state)
        self._tools = {tool.name: tool for tool in state.tools if _runs(tool)}
        self.left_out = [tool.name for tool in state.tools if tool.name not in self._tools]
        self._request = request
        self._context = ContextReader(state.prompt)
        self._set = ToolSet(
            state, code=Code(bundle.digest, state.code), surface=self.surface, simulate=True, env=os.environ
        )
        self._first = world
        self.sandboxes = Sandboxes(world)
        self._clock = Clock()
        self._slots = asyncio.Semaphore(MAX_CALLS)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with single tools."""
        return self._set.warnings

    async def open(self) -> None:
        """Connect the tools. UsageError when the world and the request cannot supply the context that tools run in."""
        try:
            self._context.read(self._request, self._first)
        except ContextError as error:
            raise UsageError(str(error), hint="--context '{\"name\": ...}' supplies what the world does not") from error
        await self._set.open()

    async def aclose(self) -> None:
        """Disconnect the tools and close every sandbox."""
        await self._set.aclose()
        self.sandboxes.close()

    def offered(self) -> list[OfferedTool]:
        """Every tool that can be called, in the order of the harness."""
        shown = {entry["function"]["name"]: entry["function"] for entry in self.surface.tools}
        out: list[OfferedTool] = []
        for tool in self._tools.values():
            name = self.surface.tool_name(tool.name)
            entry = shown[name]
            out.append(
                OfferedTool(
                    name=name,
                    description=entry["description"],
                    parameters=entry["parameters"],
                    writes=tool.effect == "write",
                )
            )
        return out

    def knows(self, name: str) -> bool:
        """Whether a tool of this (surface) name is offered."""
        return self.surface.tool_to_canonical(name) in self._tools

    async def call(self, session: str, name: str, args: dict[str, Any]) -> ToolOutcome:
        """What a call of an offered tool comes to, in the sandbox of `session`."""
        canonical = self.surface.tool_to_canonical(name)
        tool = self._tools[canonical or name]
        arguments = self.surface.args_to_canonical(tool.name, args)
        wrong = (
            "the arguments name parameters that the tool does not have"
            if arguments is None
            else self._set.check_arguments(tool.name, arguments)
        )
        if arguments is None or wrong is not None:
            return ToolOutcome(status="invalid", error=wrong, attempts=0)
        async with self._slots:
            sandbox = self.sandboxes.get(session)
            sandbox.calls += 1
            try:
                if tool.effect != "write":
                    return await self._run(tool, arguments, sandbox)
                async with sandbox.writing:
                    return await self._run(tool, arguments, sandbox)
            finally:
                sandbox.calls -= 1

    async def _run(self, tool: Tool, args: dict[str, Any], sandbox: Sandbox) -> ToolOutcome:
        world: World | None = sandbox.world
        limits = self.surface.limits
        try:
            context = self._context.read(self._request, world)
        except ContextError as error:
            return ToolOutcome(status="error", error=str(error), attempts=0)
        outcome = await self._set.call(
            tool,
            args,
            ToolContext(
                context=context,
                session=sandbox.tools,
                world=world,
                limits=dict(limits),
                deadline=self._clock.monotonic() + limits["deadline_s"],
            ),
            float(limits["tool_timeout_s"]),
        )
        if outcome.error is not None:
            outcome.error = self.surface.shown(outcome.error)
        return outcome


def _runs(tool: Tool) -> bool:
    """Whether there is something to call: skills are loaded by an agent's loop, and a final tool may only end it."""
    spec = tool.simulate or tool.run
    return spec is not None and spec.get("builtin") != "load_skill"
