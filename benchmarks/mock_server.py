"""A zero-latency endpoint for chat completions that plays one complete agent request of three calls.

    python -m benchmarks.mock_server PORT [CPU]

The assistant messages in the request say which call it is: the first answers with `load_skill`, the second with
`get_product_info_by_link_id`, later ones with the final text; as one JSON document, or as events where `stream` is
true. The answers are made once. The server prints `ready PORT` and ends with its parent's standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import orjson

FINAL = "The item behind link 3 is the Aurora 2 desk lamp: 39.90 EUR, in stock, and it ships within two days."
CALLS = [("load_skill", {"skill": "item-qa"}), ("get_product_info_by_link_id", {"link_id": 3})]
USAGE = {"prompt_tokens": 7000, "completion_tokens": 30, "total_tokens": 7030}


def _http(body: bytes, kind: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (kind, len(body))
    return head + body


def _message(step: int) -> dict[str, Any]:
    if step == len(CALLS):
        return {"role": "assistant", "content": FINAL}
    name, arguments = CALLS[step]
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{step}", "type": "function", "function": function}],
    }


def _whole(step: int) -> bytes:
    message = _message(step)
    choice = {"index": 0, "message": message, "finish_reason": _finish(step), "logprobs": None}
    return _http(_document(step, "chat.completion", choices=[choice], usage=USAGE), b"application/json")


def _stream(step: int) -> bytes:
    delta = _message(step)
    for index, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = index
    events = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(step)}]},
        {"choices": [], "usage": USAGE},
    ]
    lines = [b"data: " + _document(step, "chat.completion.chunk", **event) + b"\n\n" for event in events]
    return _http(b"".join(lines) + b"data: [DONE]\n\n", b"text/event-stream")


def _finish(step: int) -> str:
    return "stop" if step == len(CALLS) else "tool_calls"


def _document(step: int, kind: str, **fields: Any) -> bytes:
    head = {"id": f"chatcmpl-{step}", "object": kind, "created": 1700000000, "model": "mock"}
    return orjson.dumps(head | fields)


ANSWERS = {(step, stream): (_stream if stream else _whole)(step) for step in range(3) for stream in (False, True)}


class Connection(asyncio.Protocol):
    """Reads requests with a content-length, one after the other, and answers each."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.received = bytearray()
        self.needed = 0

    def data_received(self, data: bytes) -> None:
        self.received += data
        while len(self.received) >= self.needed:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.received[:end]).lower()
            if b"expect: 100-continue" in head and not self.needed:
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            place = head.find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            self.needed = end + 4 + length
            if len(self.received) < self.needed:
                return
            body = bytes(self.received[end + 4 : self.needed])
            del self.received[: self.needed]
            self.needed = 0
            self.transport.write(self.answer(body))
            if not self.received:
                return

    def answer(self, body: bytes) -> bytes:
        request = orjson.loads(body)
        step = sum(message["role"] == "assistant" for message in request["messages"])
        return ANSWERS[min(step, len(CALLS)), bool(request.get("stream"))]


async def main(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", port, backlog=1024)
    print("ready", server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        os.sched_setaffinity(0, {int(sys.argv[2])})
    asyncio.run(main(int(sys.argv[1])))
