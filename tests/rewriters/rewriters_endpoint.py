"""An endpoint for chat completions that does, for each text, what a test tells it to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

Behaviour = Callable[[str, int], web.Response | str | None]


def wordings(*texts: str) -> str:
    return json.dumps({"wordings": list(texts)}, ensure_ascii=False)


class FakeEndpoint:
    """`behave(text, attempt)` gives a reply's content, a whole response, or None to hang; `asked` are the bodies."""

    def __init__(self) -> None:
        self.behave: Behaviour = lambda text, attempt: wordings(f"In short: {text}", f"Note: {text}")
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.url = ""
        self._attempts: dict[str, int] = {}
        self._released = asyncio.Event()

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        self._released.set()
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        self.keys.append(request.headers.get("Authorization"))
        text = json.loads(body["messages"][-1]["content"])["text"]
        attempt = self._attempts[text] = self._attempts.get(text, 0) + 1
        said = self.behave(text, attempt)
        if said is None:
            await self._released.wait()
            return web.Response(status=503)
        if isinstance(said, web.Response):
            return said
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        return web.json_response({"id": "x", "object": "chat.completion", "choices": [choice]})
