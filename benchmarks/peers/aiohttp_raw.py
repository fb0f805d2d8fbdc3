"""The least that carries the request out: aiohttp and the standard library's json; nothing checked, nothing kept."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks import workload


async def setup(base_url: str, *, stream: bool, record: Path) -> Callable[[], Awaitable[str]]:
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100))
    headers = {"content-type": "application/json", "authorization": "Bearer x"}
    tools = workload.function_tools()

    async def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
        body = json.dumps({"model": "mock", "messages": messages, "tools": tools}).encode()
        async with session.post(base_url + "/chat/completions", data=body, headers=headers) as response:
            return json.loads(await response.read())["choices"][0]["message"]

    async def request() -> str:
        messages = workload.first_messages()
        while True:
            message = await ask(messages)
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                function = call["function"]
                result = await workload.TOOLS[function["name"]](**json.loads(function["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    return request
