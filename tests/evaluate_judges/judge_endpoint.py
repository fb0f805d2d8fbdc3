"""A local OpenAI-compatible endpoint that judges, and fails as it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import orjson
from canned_server import LocalServer, completion, http, read_request
from judge_project import answer

#: What comes of (item, how many requests came before): a text, or one of the failures of `FAILURES`.
Says = Callable[[str, int], str]

#: Ways to fail: 429 and 500, a connection cut in the middle of an answer, and one closed before it.
FAILURES = ("429", "500", "cut", "closed")


class JudgeEndpoint(LocalServer):
    """`asked` are the items in the order of requests."""

    def __init__(self, says: Says | None = None) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._says = says or (lambda item, number: answer(item))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                _, data = await read_request(reader)
                body: dict[str, Any] = orjson.loads(data)
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
