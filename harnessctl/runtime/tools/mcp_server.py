"""MCP server: one that offers tools, over stdio or streamable HTTP, through the official `mcp` package (extra `mcp`).

What always holds: a server is started once and its connection kept; the connection is opened and closed by one task of
its own, as the package's cancel scopes demand, while calls run side by side from the tasks of their requests; a server
that cannot be started, hangs, prints garbage or dies is a failed call, never a crash. A connection that was lost is
opened again, once per call; the call is repeated only where that is known to be safe.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from harnessctl import __version__
from harnessctl.runtime.tools.environment import Environment
from harnessctl.runtime.tools.mcp_result import result_value
from harnessctl.runtime.tools.outcome import Failure, shorten

#: How long a server may take to answer its first questions; `uvx` and `npx` download on the first start.
START_TIMEOUT_S = 30.0
#: A server that could not be started is not tried again for this long; calls fail at once meanwhile.
RESTART_PAUSE_S = 5.0
MAX_PAGES = 100
#: How much of the end of a server's standard error is kept.
ERROR_TAIL_BYTES = 2000

logging.getLogger("mcp").addHandler(logging.NullHandler())  # its tracebacks are not for a terminal


class _ErrorTail:
    """The end of what a server writes to its standard error, read by a thread of its own."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.file = os.fdopen(writing, "w")
        self._tail = b""
        self._thread = threading.Thread(target=self._read, args=(reading,), name="harnessctl-mcp-stderr", daemon=True)
        self._thread.start()

    def _read(self, reading: int) -> None:
        with open(reading, "rb", buffering=0) as pipe:
            while chunk := pipe.read(4096):
                self._tail = (self._tail + chunk)[-ERROR_TAIL_BYTES:]

    async def last_line(self) -> str:
        """The last line that is not blank, once the server has ended (or a moment later)."""
        await asyncio.to_thread(self._thread.join, 0.5)
        lines = self._tail.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


class _Link:
    """One life of a connection: from the start of a server to its end."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.stop = asyncio.Event()
        self.client: Any = None
        self.tools: list[dict[str, Any]] = []
        self.failure: str | None = None
        self.ended = False

    @property
    def over(self) -> bool:
        """Whether another life may begin: this one has begun and ended."""
        return self.ended and self.ready.is_set()

    def end(self) -> None:
        """Let the owner close it; nobody begins a call on it any more."""
        self.ended = True
        self.stop.set()


class McpConnection:
    """One server. `spec` is the server as a manifest writes it; `note` is told of failures, for a person to read."""

    def __init__(
        self,
        name: str,
        spec: Mapping[str, Any],
        environment: Environment,
        *,
        start_timeout_s: float = START_TIMEOUT_S,
        note: Callable[[str], None],
    ) -> None:
        self._name = name
        self._spec = spec
        self._environment = environment
        self._start_timeout_s = start_timeout_s
        self._note = note
        self._link: _Link | None = None
        self._owners: set[asyncio.Task[None]] = set()
        self._not_before = 0.0
        self._closed = False

    async def start(self) -> list[dict[str, Any]]:
        """Make sure that the server runs; its tools as `discover` gives them. Failure when it cannot be started."""
        return (await self._live()).tools

    async def call(self, tool: str, args: dict[str, Any], *, repeatable: bool) -> Any:
        """The result of a tool as plain JSON. Failure otherwise.

        After a connection was lost the call is made again on a new one if it is `repeatable` or was refused unread.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

        for last in (False, True):
            link = await self._live()
            try:
                return result_value(await link.client.call_tool(tool, args))
            except MCPError as error:
                unread = error.code == INVALID_REQUEST and error.message == "Session terminated"
                if error.code != CONNECTION_CLOSED and not unread:
                    raise Failure("error", self._hidden(error.message)) from None
                link.end()
                if not last and (repeatable or unread):
                    continue
                effect = "" if repeatable else "; whether it took effect is not known"
                raise Failure("error", f"the server ended before it answered{effect}") from None
            except Failure:
                raise
            except Exception as error:
                # The package raises what it finds wrong with an answer (pydantic, RuntimeError): the server's fault.
                raise Failure(
                    "error", self._hidden(f"the server's answer cannot be read: {_sentence(error)}")
                ) from None
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        """Close the connection for good and end the server; waits until its process is gone."""
        self._closed = True
        owners = set(self._owners)
        if self._link is not None:
            self._link.end()
            if not self._link.ready.is_set():
                for owner in owners:
                    owner.cancel()
        if owners:
            await asyncio.wait(owners)

    async def _live(self) -> _Link:
        """The open connection, made if there is none."""
        if self._closed:
            raise Failure("error", "the tools are closed", retryable=False, sent=False)
        link = self._link
        loop = asyncio.get_running_loop()
        if link is None or (link.over and (link.failure is None or loop.time() >= self._not_before)):
            link = self._link = _Link()
            owner = loop.create_task(self._own(link), name=f"mcp server {self._name}")
            self._owners.add(owner)
            owner.add_done_callback(self._owners.discard)
        await link.ready.wait()
        if link.failure is not None:
            raise Failure("error", link.failure, sent=False, retryable=False)
        return link

    async def _own(self, link: _Link) -> None:
        """Open the connection, keep it until it is told to stop or ends, close it."""
        tail: _ErrorTail | None = None
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._start_timeout_s):
                    if self._spec.get("command") is not None:
                        tail = _ErrorTail()
                        stack.callback(tail.file.close)
                    link.client = await stack.enter_async_context(await self._client(link, stack, tail))
                    link.tools = await _tools(link.client)
                link.ready.set()
                await link.stop.wait()
        except Exception as error:
            # Opening runs another program or talks to one: anything may come back, and it is that program's fault.
            if not link.ready.is_set():
                await self._failed(link, error, tail)
        finally:
            if not link.ready.is_set() and link.failure is None:
                link.failure = "the tools were closed while the server was starting"
            link.ended = True
            link.ready.set()

    async def _failed(self, link: _Link, error: Exception, tail: _ErrorTail | None) -> None:
        cause = self._hidden(_cause(error, self._start_timeout_s))
        link.failure = f"the server could not be started: {cause}"
        self._not_before = asyncio.get_running_loop().time() + RESTART_PAUSE_S
        said = self._hidden(await tail.last_line()) if tail is not None else ""
        self._note(f"MCP server `{self._name}`: {link.failure}" + (f"; it wrote: {said}" if said else ""))

    async def _client(self, link: _Link, stack: AsyncExitStack, tail: _ErrorTail | None) -> Any:
        from httpx2 import AsyncClient, Timeout
        from mcp import Client, Implementation, StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        fill = self._environment.fill
        if tail is not None:
            parameters = StdioServerParameters(
                command=fill(self._spec["command"]),
                args=[fill(argument) for argument in self._spec.get("args", [])],
                env={key: fill(value) for key, value in self._spec.get("env", {}).items()},
                encoding_error_handler="replace",
            )
            transport: Any = stdio_client(parameters, errlog=tail.file)
        else:
            headers = {key: fill(value) for key, value in self._spec.get("headers", {}).items()}
            # A server may keep a stream open for long; how long a call takes is decided by the caller.
            client = AsyncClient(headers=headers, timeout=Timeout(30, read=300))
            http = await stack.enter_async_context(client)
            transport = streamable_http_client(fill(self._spec["url"]), http_client=http)
        return Client(
            _Watched(transport, link.end),
            client_info=Implementation(name="harnessctl", version=__version__),
            cache=None,
        )

    def _hidden(self, text: str) -> str:
        return self._environment.hide(shorten(" ".join(text.split())))


class _Watched:
    """A transport that tells when the server's side ends, so that the next call begins on a new connection."""

    def __init__(self, transport: Any, on_end: Callable[[], None]) -> None:
        self._transport = transport
        self._on_end = on_end

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._transport.__aenter__()
        return _WatchedStream(read, self._on_end), write

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._transport.__aexit__(*error)


class _WatchedStream:
    """A read stream that is passed on as it is, but for its end."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> _WatchedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stream.__aexit__(*error)


async def _tools(client: Any) -> list[dict[str, Any]]:
    """Every page of tools/list."""
    tools: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    dumped = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta", "icons"}) for tool in tools
    ]
    return sorted(dumped, key=lambda tool: tool["name"])


def _cause(error: BaseException, start_timeout_s: float) -> str:
    """The first leaf of an error that may be a group of groups, as a sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {start_timeout_s:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return _sentence(error)


def _sentence(error: BaseException) -> str:
    """What an error says; of an answer that breaks the protocol, the first place and what is wrong there."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'/'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error) or type(error).__name__
