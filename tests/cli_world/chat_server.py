"""A chat endpoint on this machine that says what it is told to, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Chat:
    """`asked` are the bodies of the requests."""

    def __init__(self, url: str, asked: list[dict[str, Any]]) -> None:
        self.url = url
        self.asked = asked


def worded(body: dict[str, Any]) -> str:
    """Two wordings of the text that is asked about."""
    text = json.loads(body["messages"][-1]["content"])["text"]
    return json.dumps({"wordings": [f"hey, {text}", f"{text} please"]}, ensure_ascii=False)


@contextmanager
def chatting(says: Callable[[dict[str, Any]], str] = worded, **more: Any) -> Iterator[Chat]:
    """The endpoint, until the block ends; `says` makes an answer of a request's body, `more` stands in each document."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body)
            choice = {"index": 0, "message": {"role": "assistant", "content": says(body)}, "finish_reason": "stop"}
            data = json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], **more}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            del arguments

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield Chat(f"http://127.0.0.1:{server.server_port}/v1", asked)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
