"""Stdio: one client on standard input and output; ends when the client does, or at SIGTERM.

What always holds: only messages of the protocol reach the client; what tools and their programs print goes to standard
error, and they find nothing on standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any, cast

from harnessctl.simulate.serving.protocol import mcp_server
from harnessctl.simulate.serving.tools import ServedTools

#: A longer message is cut, which makes it unreadable, and is answered as such.
MAX_LINE_BYTES = 4 << 20
_CHUNK_BYTES = 1 << 16
#: Messages read and not yet taken; the client waits beyond that.
_MAX_WAITING = 64


class Lines:
    """The lines of a file descriptor as text. A thread reads it, which ends with the process at the latest: a pipe that
    nobody writes to cannot be waited for in a way that a signal ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_MAX_WAITING)
        self._waiting: asyncio.Future[bytes | None] | None = None
        self._ended = False
        threading.Thread(target=self._read, name="harnessctl-stdin", daemon=True).start()

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> str:
        line: bytes | None = None
        if not self._ended:
            self._waiting = asyncio.ensure_future(self._lines.get())
            try:
                line = await self._waiting
            except asyncio.CancelledError:
                if not self._ended:
                    raise
        if line is None:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")

    def end(self) -> None:
        """Take no more lines, as if there were none."""
        self._ended = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _read(self) -> None:
        rest = b""
        try:
            while chunk := os.read(self._descriptor, _CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                rest = rest[:MAX_LINE_BYTES]
                for line in lines:
                    if line.strip():
                        self._put(line)
            if rest.strip():
                self._put(rest)
            self._put(None)
        except (OSError, RuntimeError):  # the descriptor or the loop is closed: nobody waits for more
            return

    def _put(self, line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


class Answers:
    """Where messages are written to: a file descriptor of our own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def write(self, text: str) -> None:
        """Write all of `text`; in a thread, since a client that does not read would hold the loop."""
        await asyncio.to_thread(self._write, text.encode())

    async def flush(self) -> None:
        """Nothing is held back."""

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the client has gone; the end of its input ends the server
            while data:
                data = data[os.write(self._descriptor, data) :]


async def serve_stdio(tools: ServedTools, name: str) -> None:
    """Serve until standard input ends or SIGTERM comes. `tools` are opened and closed here."""
    from mcp.server.stdio import stdio_server

    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    sys.stdout.flush()
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    try:
        await tools.open()
        server = mcp_server(tools, name)
        lines = Lines(reading)
        with _called_at_sigterm(lines.end):
            async with stdio_server(cast("Any", lines), cast("Any", Answers(writing))) as (read, write):
                await server.run(read, write, server.create_initialization_options())
    finally:
        await tools.aclose()
        os.dup2(reading, 0)
        os.dup2(writing, 1)
        for descriptor in (nothing, writing):
            os.close(descriptor)


@contextlib.contextmanager
def _called_at_sigterm(stop: Callable[[], None]) -> Generator[None]:
    """SIGTERM calls `stop`, so that the exit code is 0, as a client expects of its server."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
