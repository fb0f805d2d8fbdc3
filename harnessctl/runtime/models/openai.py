"""OpenAI: a model behind any endpoint that speaks chat completions (OpenAI, SGLang, vLLM, llama.cpp, gateways).

What always holds: `complete` raises ModelError and nothing else (but for cancellation), returns or raises by the
deadline, and reads at most `max_response_bytes` of an answer. It tries once: the loop decides about another try.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable

import aiohttp
import msgspec
import orjson

from harnessctl.errors import ModelError
from harnessctl.runtime.deadline import Cutoff
from harnessctl.runtime.models.encode import BodyEncoder
from harnessctl.runtime.models.endpoint import Endpoint, resolve_endpoint
from harnessctl.runtime.models.failure import (
    connection_failure,
    cut_stream,
    reported_failure,
    shorten,
    status_failure,
    unreadable,
)
from harnessctl.runtime.models.sse import EventSplitter
from harnessctl.runtime.models.wire import Completion, ReplyDraft, decode_completion, whole_reply
from harnessctl.runtime.protocols import ModelReply, ModelRequest

#: Bodies above this size are handed to aiohttp as a file, which it sends in pieces.
_LARGE_BODY = 1 << 20
#: How long the end of a stream is waited for after its last event, so that the connection can serve again.
_LINGER_S = 0.25
_DONE = b"[DONE]"
#: How much of an error's body is read.
_ERROR_BYTES = 64 << 10


class OpenAIModel:
    """A policy behind an endpoint. Connections are kept per event loop and closed by `aclose` in that loop.

    `monotonic` and `now` (seconds; UTC) are given by tests.
    """

    template: str | None = None

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name = endpoint.model
        self.endpoint = endpoint
        self._target = resolve_endpoint(endpoint)
        fixed = {"stream": True, "stream_options": {"include_usage": True}} if endpoint.stream else {}
        self._encoder = BodyEncoder(
            model=endpoint.model, fixed=fixed | endpoint.body, send_reasoning=endpoint.send_reasoning
        )
        self._monotonic = monotonic
        self._now = now
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request; ModelError says whether another try may help."""
        started = self._monotonic()
        left = request.deadline - started
        if left <= 0:
            raise ModelError("the deadline had passed before the model was asked", retryable=False)
        try:
            body = self._encoder.encode(request)
        except orjson.JSONEncodeError as error:
            raise ModelError(f"the messages cannot be sent as JSON: {shorten(str(error))}", retryable=False) from error
        try:
            with Cutoff(left):
                return await self._ask(body, request, started)
        except aiohttp.ClientError as error:
            raise connection_failure(self._target.shown, error, secrets=self._target.secrets) from error
        except TimeoutError as error:
            raise ModelError(f"{self._target.shown} did not answer within {left:.1f} s", retryable=False) from error
        except OSError as error:
            raise connection_failure(self._target.shown, error, secrets=self._target.secrets) from error

    async def aclose(self) -> None:
        """Close the connections of the running event loop; those of a loop that has ended are gone with it."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _open_session(self) -> aiohttp.ClientSession:
        """A session for the running event loop; forgets those of loops that have ended."""
        session = self._sessions[asyncio.get_running_loop()] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.endpoint.connections),
            headers=self._target.headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.endpoint.connect_timeout_s),
            proxy=self._target.proxy,
        )
        ended = [self._sessions.pop(loop) for loop in list(self._sessions) if loop.is_closed()]
        for old in ended:
            await old.close()
        return session

    async def _ask(self, body: bytes, request: ModelRequest, started: float) -> ModelReply:
        data = body if len(body) <= _LARGE_BODY else io.BytesIO(body)
        session = self._sessions.get(asyncio.get_running_loop()) or await self._open_session()
        response = await session.post(self._target.url, data=data, allow_redirects=False)
        try:
            return await self._answer(response, request, started)
        finally:
            if not response.content.at_eof():  # one that was read to its end has given its connection back
                response.close()

    async def _answer(self, response: aiohttp.ClientResponse, request: ModelRequest, started: float) -> ModelReply:
        """The reply in `response`, whole or streamed."""
        if not 200 <= response.status < 300:
            said = await self._read(response, limit=_ERROR_BYTES, cut=True)
            raise status_failure(
                self._target.shown,
                response.status,
                response.headers,
                said,
                now=self._now(),
                secrets=self._target.secrets,
            )
        if response.headers.get("Content-Type", "").lower().startswith("text/event-stream"):
            return await self._read_stream(response, request, started)
        answer = await self._read(response, limit=self.endpoint.max_response_bytes)
        completion = self._decode(answer)
        choice = completion.choices[0] if completion.choices else None
        if choice is None or choice.message is None:
            raise unreadable(
                self._target.shown, answer, "`choices[0].message` is missing", secrets=self._target.secrets
            )
        return whole_reply(completion, choice, choice.message, request)

    async def _read(self, response: aiohttp.ClientResponse, *, limit: int, cut: bool = False) -> bytes:
        """The body; ModelError when it is longer than `limit`, or only its beginning where `cut`."""
        parts: list[bytes] = []
        size, content = 0, response.content
        while chunk := await content.readany():
            parts.append(chunk)
            size += len(chunk)
            if size > limit and not cut:
                raise self._too_long(limit)
            if size > limit or content.at_eof():
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)[: limit if cut else None]

    async def _read_stream(self, response: aiohttp.ClientResponse, request: ModelRequest, started: float) -> ModelReply:
        """The reply that a stream of events spells: whole when a finish reason or `[DONE]` was seen."""
        draft, splitter, content = ReplyDraft(), EventSplitter(), response.content
        ttft_s: float | None = None
        size, done = 0, False
        try:
            while not done and (chunk := await content.readany()):
                size += len(chunk)
                if size > self.endpoint.max_response_bytes:
                    raise self._too_long(self.endpoint.max_response_bytes)
                for data in splitter.feed(chunk):
                    if data == _DONE:
                        done = True
                    elif data and draft.add(self._decode(data)) and ttft_s is None:
                        ttft_s = self._monotonic() - started
        except aiohttp.ClientPayloadError:
            if not draft.finished:  # else only the count of tokens is lost
                raise
        if done:
            await _reach_end(content)
        elif not draft.finished and _DONE not in splitter.close():
            raise cut_stream(self._target.shown)
        return draft.finish(request, ttft_s=ttft_s)

    def _decode(self, data: bytes) -> Completion:
        """`data` typed; ModelError when it is not what chat completions send, or reports an error."""
        try:
            completion = decode_completion(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise unreadable(self._target.shown, data, error, secrets=self._target.secrets) from error
        if completion.error:
            raise reported_failure(self._target.shown, completion.error, secrets=self._target.secrets)
        return completion

    def _too_long(self, limit: int) -> ModelError:
        return ModelError(
            f"{self._target.shown} answered with more than {limit} bytes",
            retryable=False,
            hint="max_response_bytes of the endpoint bounds an answer",
        )


async def _reach_end(content: aiohttp.StreamReader) -> None:
    """Read the little that follows the last event. A server that says no more loses its connection, not our time."""
    if content.at_eof():
        return
    try:
        async with asyncio.timeout(_LINGER_S):
            await content.readany()
    except (TimeoutError, aiohttp.ClientError):
        return
