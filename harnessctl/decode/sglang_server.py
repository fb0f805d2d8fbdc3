"""SGLang server: the way to one server and its native API, as JSON documents in and out.

What always holds: a failure is a ModelError that says whether another try may help and names no secret; connections are
kept per event loop; an answer of more than `max_response_bytes` is refused.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import orjson
from yarl import URL

from harnessctl.errors import ModelError, UsageError
from harnessctl.runtime.models.endpoint import Endpoint, resolve_endpoint
from harnessctl.runtime.models.failure import connection_failure, shorten, status_failure, unreadable

_HINTS = {404: "the native API is at the server's root; is it SGLang?", 405: "is it SGLang?"}
_LONGEST_WAIT_S = 86_400.0


class SGLangServer:
    """One server. `base_url` is its root, `http://127.0.0.1:30000`; `key_env`, `headers` and the bounds are as in
    `Endpoint`. UsageError for a URL that is none, or that names the OpenAI-compatible API."""

    def __init__(
        self,
        base_url: str,
        *,
        key_env: str | None = None,
        headers: dict[str, str] | None = None,
        connections: int = 256,
        connect_timeout_s: float = 10.0,
        max_response_bytes: int = 64 << 20,
    ) -> None:
        settings = Endpoint(model="", base_url=base_url, key_env=key_env, headers=headers or {}, stream=False)
        self._target = resolve_endpoint(settings)
        self._root = URL(base_url)
        if self._root.path.rstrip("/").endswith("/v1"):
            raise UsageError(
                f"base_url of the SGLang server; got {base_url!r}; allowed its root, without /v1",
                hint="rollouts use /generate, which answers with token ids",
            )
        self.shown = self._target.shown
        self._connections = connections
        self._connect_timeout_s = connect_timeout_s
        self._max_bytes = max_response_bytes
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    async def ask(self, path: str, document: object | None, *, seconds: float, refused: bool = False) -> dict[str, Any]:
        """The answer of `path`, an object: POST of `document`, GET where it is null. ModelError: not retryable after
        `seconds`. With `refused`, the answer of status 400 is returned too."""
        try:
            async with asyncio.timeout(min(seconds, _LONGEST_WAIT_S)):
                status, headers, body = await self._send(path, document)
        except aiohttp.ClientError as error:
            raise connection_failure(self.shown, error, secrets=self._target.secrets) from error
        except TimeoutError as error:
            raise ModelError(f"{self.shown} did not answer {path} within {seconds:.1f} s", retryable=False) from error
        except OSError as error:
            raise connection_failure(self.shown, error, secrets=self._target.secrets) from error
        if not 200 <= status < 300 and not (refused and status == 400):
            failure = status_failure(self.shown, status, headers, body, now=time.time(), secrets=self._target.secrets)
            failure.hint = _HINTS.get(status, failure.hint)
            raise failure
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise unreadable(self.shown, body, error, secrets=self._target.secrets) from error
        if not isinstance(answer, dict):
            raise self.odd(path, f"got {type(answer).__name__}, not an object")
        return answer

    def odd(self, path: str, what: str) -> ModelError:
        """The error for an answer that is not what SGLang sends."""
        return ModelError(f"{self.shown} did not answer {path} as SGLang does: {self.short(what)}", retryable=False)

    def short(self, text: str) -> str:
        """What the server said, on one line and without secrets."""
        return shorten(text, self._target.secrets)

    async def aclose(self) -> None:
        """Close the connections of the running event loop; those of a loop that has ended are gone with it."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _send(self, path: str, document: object | None) -> tuple[int, Any, bytes]:
        session = self._sessions.get(asyncio.get_running_loop()) or await self._open_session()
        method, data = ("GET", None) if document is None else ("POST", orjson.dumps(document))
        async with session.request(method, self._root / path.strip("/"), data=data, allow_redirects=False) as response:
            parts: list[bytes] = []
            size = 0
            async for chunk in response.content.iter_any():
                parts.append(chunk)
                size += len(chunk)
                if size > self._max_bytes:
                    raise ModelError(f"{self.shown} answered with more than {self._max_bytes} bytes", retryable=False)
            return response.status, response.headers, b"".join(parts)

    async def _open_session(self) -> aiohttp.ClientSession:
        """A session for the running event loop; forgets those of loops that have ended."""
        session = self._sessions[asyncio.get_running_loop()] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections),
            headers=self._target.headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout_s),
            proxy=self._target.proxy,
        )
        for old in [self._sessions.pop(loop) for loop in list(self._sessions) if loop.is_closed()]:
            await old.close()
        return session
