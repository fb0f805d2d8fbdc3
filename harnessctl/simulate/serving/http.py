"""HTTP: streamable HTTP on this machine alone, for clients that know a bearer token; ends at SIGTERM or Ctrl-C.

What always holds: the server listens on 127.0.0.1 only, answers nobody without the token, refuses other Host and Origin
headers (a web page must not reach it through a browser), and reads a bounded number of messages of bounded size at once;
more of them wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import signal
import socket
from collections.abc import Callable, Generator
from typing import Any

from harnessctl.errors import UsageError
from harnessctl.simulate.serving.protocol import mcp_server
from harnessctl.simulate.serving.sandboxes import CAPACITY
from harnessctl.simulate.serving.tools import ServedTools

HOST = "127.0.0.1"
#: Messages read and answered at once. A client that makes many calls side by side opens a connection for each.
MAX_MESSAGES = 64
MAX_CONNECTIONS = 1024
MAX_BODY_BYTES = 4 << 20
IDLE_SESSION_S = 1800.0


async def serve_http(tools: ServedTools, name: str, *, port: int, token: str, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM. `ready` is told the URL. UsageError when the port is taken."""
    import uvicorn

    listening = _listen(port)
    url = f"http://{HOST}:{listening.getsockname()[1]}/mcp"
    try:
        await tools.open()
        app = mcp_server(tools, name).streamable_http_app(
            host=HOST, max_sessions=CAPACITY, session_idle_timeout=IDLE_SESSION_S, max_request_body_size=MAX_BODY_BYTES
        )
        config = uvicorn.Config(
            _Guarded(app, token),
            log_level="error",
            access_log=False,
            lifespan="on",
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=2,
        )
        server = _server(config)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, setattr, server, "should_exit", True)
        ready(url)
        await server.serve(sockets=[listening])
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
        listening.close()
        await tools.aclose()


def _server(config: Any) -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        """Leaves signals to us: what uvicorn catches it raises again, which would end the program before it tidied up."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    return Server(config)


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise UsageError(
            f"cannot listen on {HOST}:{port}: {error.strerror}", hint="--http 0 takes a free port"
        ) from None
    listening.listen()
    return listening


class _Guarded:
    """The app behind a bearer token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._wanted = token.encode()
        self._slots = asyncio.Semaphore(MAX_MESSAGES)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif hmac.compare_digest(self._given(scope), self._wanted):
            # What is not sent is a stream that stays open, or the end of a session: it must not keep messages waiting.
            async with self._slots if scope.get("method") == "POST" else contextlib.nullcontext():
                await self._app(scope, receive, send)
        elif scope["type"] == "http":
            headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"a bearer token is needed\n"})

    @staticmethod
    def _given(scope: Any) -> bytes:
        """The token that a request brings; the name of the scheme has no case (RFC 9110)."""
        value = next((value for key, value in scope.get("headers", ()) if key == b"authorization"), b"")
        scheme, _, token = value.partition(b" ")
        return token.strip() if scheme.lower() == b"bearer" else b""
