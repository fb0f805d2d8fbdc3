"""Tool set: every tool of a bundle, ready to be called by the agent loop, side by side and within its time.

What always holds: `call` raises nothing but CancelledError; a call is tried again only for `error` and `timeout`, at
most `retries` times, and a tool that writes only where the try is known not to have begun; every try ends by the
request's deadline (a tool that ignores its cancellation may take `timing.GRACE_S` longer).

Faults of the set-up (a variable that is not set) are raised by `open`, all at once. A tool that cannot run for another
reason (a server that is down, code that does not load) is an entry in `warnings` and an error at each call: the rest of
the harness works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import CoroutineType
from typing import Any, Protocol

from harnessctl.bundle.state import HarnessState, Tool
from harnessctl.errors import ToolError
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.code import Code
from harnessctl.runtime.foreign import must_pass, said
from harnessctl.runtime.protocols import ToolContext
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tools.arguments import ArgumentCheck
from harnessctl.runtime.tools.builtin import SearchFaq
from harnessctl.runtime.tools.drift import drift
from harnessctl.runtime.tools.environment import Environment
from harnessctl.runtime.tools.http import HttpCall, HttpClient
from harnessctl.runtime.tools.mcp import McpCall, server_fault
from harnessctl.runtime.tools.mcp_server import START_TIMEOUT_S, McpConnection
from harnessctl.runtime.tools.outcome import Failure, ResultForm, ToolOutcome, shorten
from harnessctl.runtime.tools.python import PythonCall, describe, not_begun
from harnessctl.runtime.tools.threads import Threads
from harnessctl.runtime.tools.timing import Expired, finish_within

BACKOFF_S = 0.1
MAX_BACKOFF_S = 2.0


class Runner(Protocol):
    """How one tool is carried out. `begin` gives the result or a coroutine for it, and may raise anything."""

    def begin(self, args: dict[str, Any], ctx: ToolContext) -> Any: ...


class ToolSet:
    """The tools of `state`. With `simulate` a tool's sandboxed replica is used where it has one.

    Belongs to one event loop. ToolError where parameters are not a JSON Schema. `env` is what `${NAME}` is filled in
    from.
    """

    def __init__(
        self,
        state: HarnessState,
        *,
        code: Code,
        surface: SurfaceView,
        simulate: bool = False,
        env: Mapping[str, str],
        clock: Clock | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self.warnings: list[str] = []
        self._state = state
        self._code = code
        self._surface = surface
        self._clock = clock or Clock()
        self._environment = Environment(env)
        #: A pool for each tool, so that calls of one that hang do not take the threads of the others.
        self._pools: list[Threads] = []
        self._http = HttpClient(self._environment)
        self._start_timeout_s = start_timeout_s
        self._connections: dict[str, McpConnection] = {}
        self._checks = {tool.name: ArgumentCheck(tool, surface) for tool in state.tools}
        max_chars = int(state.limit_values().get("tool_result_max_chars", DEFAULT_LIMITS["tool_result_max_chars"]))
        self._forms = {tool.name: ResultForm(tool, max_chars) for tool in state.tools}
        self._specs = {tool.name: _chosen(tool, simulate) for tool in state.tools}
        self._runners: dict[str, Runner] = {}
        self._broken: dict[str, str] = {}
        for tool in state.tools:
            self._prepare(tool)

    async def open(self) -> None:
        """Start the MCP servers that a tool needs, all at once, and compare their tools with the bundle's.

        ToolError names every environment variable that is missing. A server that does not start is a warning, and is
        tried again by later calls.
        """
        faults = self._setup_faults()
        if faults:
            raise ToolError("; ".join(text for text, _ in faults), hint=next((hint for _, hint in faults if hint), ""))
        try:
            await asyncio.gather(*(self._start(name) for name in self._connections))
        except BaseException:  # a cancelled start must leave no process behind
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """End the servers, close the connections, let the threads go; later calls are errors. May be called twice."""
        self._runners.clear()
        self._broken = dict.fromkeys(self._specs, "the tools are closed")
        await asyncio.gather(self._http.aclose(), *(c.aclose() for c in self._connections.values()))
        for pool in self._pools:
            pool.close()

    def check_arguments(self, tool_name: str, args: dict[str, Any]) -> str | None:
        """None when `args` (canonical names) fit; else what is wrong, in the names that the model was shown."""
        check = self._checks.get(tool_name)
        if check is None:
            return "there is no such tool"
        return None if check.is_valid(args) else check.explain(args)

    async def call(self, tool: Tool, args: dict[str, Any], ctx: ToolContext, timeout_s: float) -> ToolOutcome:
        """Carry out one call whose arguments have been checked.

        A try may take `tool.timeout_s` seconds, or `timeout_s` where the tool names none, and ends by `ctx.deadline`.
        """
        limit = tool.timeout_s or timeout_s
        attempts = 0
        while True:
            remaining = min(limit, ctx.deadline - self._clock.monotonic())
            if remaining <= 0:
                return ToolOutcome(status="timeout", error="no time was left for the call", attempts=attempts)
            attempts += 1
            try:
                return ToolOutcome(status="ok", result=await self._run(tool, args, ctx, remaining), attempts=attempts)
            except Failure as error:
                failure = error
            wait = failure.retry_after or min(BACKOFF_S * 2 ** (attempts - 1), MAX_BACKOFF_S)
            if (
                attempts > tool.retries
                or not failure.retryable
                or failure.status not in ("error", "timeout")
                or (tool.effect == "write" and failure.sent)
                or self._clock.monotonic() + wait >= ctx.deadline
            ):
                error = self._environment.hide(shorten(failure.message))
                return ToolOutcome(status=failure.status, error=error, attempts=attempts)
            await self._clock.sleep(wait)

    async def _run(self, tool: Tool, args: dict[str, Any], ctx: ToolContext, seconds: float) -> Any:
        """One try. Failure is the only thing it raises, but for a cancellation of the request."""
        runner = self._runners.get(tool.name)
        if runner is None:
            cause = self._broken.get(tool.name, "there is no such tool")
            raise Failure("error", cause, retryable=False, sent=False)
        try:
            value = runner.begin(args, ctx)
            if type(value) is CoroutineType:
                value = await finish_within(value, seconds)
            return self._forms[tool.name].plain(value)
        except Failure:
            raise
        except Expired:
            raise Failure("timeout", f"no answer within {seconds:.3g} s") from None
        except ToolError as error:
            raise Failure("error", said(error) + (f" ({error.hint})" if error.hint else "")) from error
        except PermissionError as error:
            text = said(error)
            raise Failure("denied", f"not permitted: {text}" if text else "not permitted") from error
        except TimeoutError as error:
            raise Failure("timeout", said(error) or "the tool ran out of time") from error
        except BaseException as error:
            # A tool is other people's code; whatever it raises is a result for the model.
            if must_pass(error):
                raise
            if isinstance(error, asyncio.CancelledError):
                raise Failure("error", "the tool was cancelled from within") from error
            if not_begun(error):
                names = ", ".join(f"`{name}`" for name in self._surface.args_to_surface(tool.name, args))
                raise Failure("error", f"the tool does not take these arguments: {names}", retryable=False) from error
            raise Failure("error", describe(error)) from error

    def _prepare(self, tool: Tool) -> None:
        """Make the runner of `tool`, or note why it has none."""
        try:
            runner = self._runner(tool, self._specs[tool.name])
        except ToolError as error:
            self._broken[tool.name] = error.message
            self.warnings.append(f"tool `{tool.name}`: {error.message}" + (f" ({error.hint})" if error.hint else ""))
            return
        if runner is not None:
            self._runners[tool.name] = runner

    def _runner(self, tool: Tool, spec: dict[str, Any]) -> Runner | None:
        form = self._forms[tool.name]
        match spec:
            case {"python": str(target)}:
                self._pools.append(Threads())
                runner = PythonCall(self._code.function(target), self._pools[-1])
                if wrong := runner.missing_arguments(tool.parameters):
                    self.warnings.append(f"tool `{tool.name}`: {wrong}")
                return runner
            case {"http": dict(request)}:
                return HttpCall(tool, request, self._http, form)
            case {"mcp": {"server": str(server), **rest}}:
                return McpCall(tool, rest.get("tool") or tool.name, self._connection(server), form)
            case {"builtin": "search_faq"}:
                return SearchFaq()
            case {"builtin": "load_skill"}:
                self._broken[tool.name] = "skills are loaded by the agent loop"
                return None
        if tool.final is not None:
            return _Final()
        raise ToolError(
            "the tool has only a simulated replica, nothing to run" if tool.simulate else "the tool has nothing to run"
        )

    def _connection(self, server: str) -> McpConnection:
        if server not in self._state.servers:
            raise ToolError(f"there is no MCP server `{server}`")
        if server not in self._connections:
            self._connections[server] = McpConnection(
                server,
                self._state.servers[server],
                self._environment,
                start_timeout_s=self._start_timeout_s,
                note=self._note,
            )
        return self._connections[server]

    def _note(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def _setup_faults(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for name, spec in self._specs.items():
            headers = spec.get("http", {}).get("headers")
            if not headers:
                continue
            if missing := self._environment.missing(headers):
                found.append((f"tool `{name}`: not set in the environment: {', '.join(missing)}", ""))
            elif header := self._environment.broken_header(headers):
                found.append((f"tool `{name}`: the header `{header}` has a line break in its value", ""))
        for name in self._connections:
            if fault := server_fault(self._state.servers[name], self._environment):
                found.append((f"MCP server `{name}`: {fault[0]}", fault[1]))
        return found

    async def _start(self, server: str) -> None:
        try:
            present = await self._connections[server].start()
        except Failure:
            return  # the connection has noted it
        runs = ((tool, self._specs[tool.name].get("mcp", {})) for tool in self._state.tools)
        used = {run.get("tool") or tool.name: tool for tool, run in runs if run.get("server") == server}
        self.warnings += drift(server, self._state.servers[server], used, present)


class _Final:
    """A tool that only ends the loop."""

    def begin(self, args: dict[str, Any], ctx: ToolContext) -> Any:
        del ctx
        return args


def _chosen(tool: Tool, simulate: bool) -> dict[str, Any]:
    spec = (tool.simulate or tool.run) if simulate else tool.run
    return {key: value for key, value in (spec or {}).items() if value is not None}
