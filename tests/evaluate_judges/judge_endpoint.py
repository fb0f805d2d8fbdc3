"""A local OpenAI-compatible endpoint that judges, and fails as it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Self

import orjson
from canned_server import completion, http
from judge_project import answer

#: What comes of (item, how many requests came before): a text, or one of the failures of `FAILURES`.
Says = Callable[[str, int], str]

#: Ways to fail: 429 and 500, a connection cut in the middle of an answer, and one closed before it.
FAILURES = ("429", "500", "cut", "closed")


class JudgeEndpoint:
    """Serves on 127.0.0.1 while it is entered. `url` is its base; `asked` the items in the order of requests."""

    def __init__(self, says: Says | None = None) -> None:
        self.asked: list[str] = []
        self._says = says or (lambda item, number: answer(item))
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
        self._writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(int(li[15:]) for li in head.splitlines() if li.lower().startswith("content-length:"))
                body: dict[str, Any] = orjson.loads(await reader.readexactly(length))
                item = next(m["content"] for m in body["messages"] if m["role"] == "user").split()[1]
                number = len(self.asked)
                self.asked.append(item)
                said = self._says(item, number)
                if said == "closed":
                    break
                if said == "429":
                    writer.write(http('{"error": {"message": "slow down"}}', status="429 Too Many Requests"))
                elif said == "500":
                    writer.write(http("oops", status="500 Internal Server Error"))
                elif said == "cut":
                    writer.write(completion({"role": "assistant", "content": answer(item)})[:-25])
                    break
                else:
                    writer.write(completion({"role": "assistant", "content": said}))
                await writer.drain()
        writer.close()
