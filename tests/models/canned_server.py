"""A server of canned answers on 127.0.0.1, which may be as wrong as HTTP allows, and requests to ask it with."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Self

import orjson

from harnessctl.runtime.models.endpoint import Endpoint
from harnessctl.runtime.models.openai import OpenAIModel
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


class LocalServer:
    """Listens on 127.0.0.1 while it is entered; `url` is its base. What it says is `_serve`'s."""

    def __init__(self) -> None:
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError


class Server(LocalServer):
    """Gives the n-th request the n-th answer: bytes, after which the connection is kept or closed as they say, or a
    function that writes as it likes and after which the connection is closed. `seen` are (head, body) of each request."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__()
        self.answers = list(answers)
        self.seen: list[tuple[str, bytes]] = []
        self.connections = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                self.seen.append(await read_request(reader))
                answer = self.answers[len(self.seen) - 1]
                if callable(answer):
                    await answer(writer)
                    break
                writer.write(answer)
                await writer.drain()
                if b"onnection: close" in answer:
                    break
        writer.close()


async def read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """Head and body of the next request of a connection; IncompleteReadError where there is none."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:"))
    return head, await reader.readexactly(length)


def http(body: bytes | str, *, status: str = "200 OK", kind: str = "application/json", headers: str = "") -> bytes:
    """A complete HTTP answer."""
    data = body.encode() if isinstance(body, str) else body
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{headers}content-length: {len(data)}\r\n\r\n".encode() + data


def completion(message: dict[str, Any], **more: Any) -> bytes:
    """A whole chat completion over HTTP."""
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    document = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}
    return http(orjson.dumps(document))


def sse(*events: dict[str, Any] | str) -> bytes:
    """The body of a stream of events."""
    return b"".join(
        b"data: " + (event.encode() if isinstance(event, str) else orjson.dumps(event)) + b"\n\n" for event in events
    )


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One event of a stream."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def request(text: str = "hello", *, seconds: float = 5.0, **fields: Any) -> ModelRequest:
    """A request whose deadline is so many seconds away."""
    given = {"messages": [{"role": "user", "content": text}], "tools": [], "sampling": Sampling()} | fields
    return ModelRequest(deadline=time.monotonic() + seconds, **given)


def ask(*answers: Answer, asked: ModelRequest | None = None, **settings: Any) -> ModelReply:
    """What a model says whose endpoint gives these answers, the first of them."""

    async def main() -> ModelReply:
        async with Server(*answers) as server:
            model = OpenAIModel(Endpoint(model="m", base_url=server.url, **settings))
            try:
                return await model.complete(asked or request())
            finally:
                await model.aclose()

    return asyncio.run(main())
