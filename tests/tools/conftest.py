"""A tool set from Python sources and tools, run on a loop of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from harnessctl.bundle.state import HarnessState, Limit, Prompt, Surface, Tool
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.code import Code
from harnessctl.runtime.protocols import ToolContext, World
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tools.outcome import ToolOutcome
from harnessctl.runtime.tools.toolset import ToolSet


class Bench:
    """What a test needs of a tool set: `make` it, `ctx` for a call, `run` one call or a coroutine."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def tool(self, name: str = "tool", **fields: Any) -> Tool:
        return Tool(name=name, description=["A tool."], group="retrieval", **fields)

    def make(
        self,
        *tools: Tool,
        code: Mapping[str, str] | None = None,
        limits: Mapping[str, int | float] | None = None,
        servers: Mapping[str, dict[str, Any]] | None = None,
        renames: Mapping[str, dict[str, str]] | None = None,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> ToolSet:
        state = HarnessState(
            skills=[],
            tools=list(tools),
            hooks=[],
            prompt=Prompt(blocks=[]),
            limits={name: Limit(value=value) for name, value in (limits or {}).items()},
            servers=dict(servers or {}),
            code=dict(code or {}),
            surface=Surface(parameters=dict(renames or {})),
        )
        return ToolSet(
            state,
            code=Code("0" * 64, state.code),
            surface=SurfaceView(state),
            env=env or {},
            clock=Clock(sleep=self._sleep),
            **options,
        )

    def ctx(self, *, world: World | None = None, seconds: float = 60.0) -> ToolContext:
        return ToolContext(context={}, session={}, world=world, limits={}, deadline=time.monotonic() + seconds)

    def run(self, toolset: ToolSet, tool: Tool, args: dict[str, Any] | None = None, **options: Any) -> ToolOutcome:
        """Open, one call, close."""

        async def once() -> ToolOutcome:
            await toolset.open()
            try:
                ctx = options.pop("ctx", None) or self.ctx()
                return await toolset.call(tool, args or {}, ctx, options.pop("timeout_s", 5.0))
            finally:
                await toolset.aclose()

        return asyncio.run(once())

    def python(self, source: str, args: dict[str, Any] | None = None, **fields: Any) -> ToolOutcome:
        """One call of `tool` in `source`; `timeout_s` and `limits` are for the call and the set."""
        options = {key: fields.pop(key) for key in ("timeout_s", "ctx") if key in fields}
        limits = fields.pop("limits", None)
        tool = self.tool(run={"python": "m:tool"}, **fields)
        return self.run(self.make(tool, code={"m": source}, limits=limits), tool, args, **options)


@pytest.fixture
def bench() -> Bench:
    return Bench()
