"""The loop that a careful person writes by hand for the same work as the bundle runtime.

aiohttp and orjson; arguments checked with the same JSON Schema library; the same four checks at the same points, each
decision timed and kept; model calls and tool calls timed; the whole written as one line of JSON Lines to a real file.
"""

from __future__ import annotations

import os
import re
import time
import unicodedata
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema_rs
import orjson

from benchmarks import workload

VALIDATORS = {name: jsonschema_rs.validator_for(workload.parameters(tool)) for name, tool in workload.TOOLS.items()}
FORBIDDEN = [unicodedata.normalize("NFKC", phrase).casefold() for phrase in workload.FORBIDDEN]
TRACEBACK = re.compile(workload.TRACEBACK)


class Run:
    """One request: its messages, and the record of what happened in it."""

    def __init__(self, number: int) -> None:
        self.started = time.monotonic()
        self.messages = workload.first_messages()
        self.calls: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] = []
        self.hooks: list[dict[str, Any]] = []
        self.record: dict[str, Any] = {
            "id": f"request-{number}",
            "started": datetime.now(UTC).isoformat(),
            "model": "mock",
            "request": {"text": workload.QUESTION},
            "messages": self.messages,
            "calls": self.calls,
            "tools": self.tools,
            "hooks": self.hooks,
        }

    async def check(self, hook: str, event: str, passes: Callable[[], bool]) -> bool:
        began = time.monotonic()
        decision = "pass" if passes() else "block"
        self.hooks.append(
            {
                "hook": hook,
                "event": event,
                "round": len(self.calls),
                "decision": decision,
                "took_s": time.monotonic() - began,
            }
        )
        return decision == "pass"

    async def ask(self, ask: Callable[[list[dict[str, Any]]], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        await self.check("message-length", "pre_model", lambda: len(workload.QUESTION) <= workload.MAX_MESSAGE_CHARS)
        began = time.monotonic()
        answer = await ask(self.messages)
        self.calls.append(
            {
                "round": len(self.calls) + 1,
                "seen": len(self.messages),
                "started_s": began - self.started,
                "ended_s": time.monotonic() - self.started,
                "ttft_s": answer["ttft_s"],
                "usage": answer["usage"],
                "finish_reason": answer["finish_reason"],
            }
        )
        message = answer["message"]
        self.messages.append(message)
        await self.check("no-promises", "post_model", lambda: _is_allowed(message.get("content") or ""))
        return message

    async def call(self, call: dict[str, Any]) -> None:
        name, arguments = call["function"]["name"], orjson.loads(call["function"]["arguments"])
        error = next(VALIDATORS[name].iter_errors(arguments), None)
        began = time.monotonic()
        if error is not None:
            status, result = "invalid", error.message
        elif not await self.check("skill-first", "pre_tool", lambda: self._may_call(name)):
            status, result = "blocked", "Load the skill first."
        else:
            status, result = "ok", await self.tool(name, arguments)
        self.tools.append(
            {
                "round": len(self.calls),
                "id": call["id"],
                "name": name,
                "arguments": arguments,
                "status": status,
                "started_s": began - self.started,
                "ended_s": time.monotonic() - self.started,
                "result": result,
            }
        )
        await self.check("no-traceback", "post_tool", lambda: TRACEBACK.search(result) is None)
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    async def tool(self, name: str, arguments: dict[str, Any]) -> str:
        return await workload.TOOLS[name](**arguments)

    def _may_call(self, name: str) -> bool:
        return name != "get_product_info_by_link_id" or any(
            tool["name"] == "load_skill" and tool["status"] == "ok" for tool in self.tools
        )

    def finish(self, reply: str) -> bytes:
        took_s = time.monotonic() - self.started
        return orjson.dumps(self.record | {"stop": "replied", "reply": reply, "took_s": took_s}) + b"\n"


def _is_allowed(text: str) -> bool:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return not any(phrase in folded for phrase in FORBIDDEN)


class Endpoint:
    """Chat completions over one aiohttp session."""

    def __init__(self, base_url: str, *, stream: bool) -> None:
        self.url = base_url + "/chat/completions"
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=100),
            headers={"content-type": "application/json", "authorization": "Bearer x"},
        )
        self.fixed: dict[str, Any] = {"model": "mock", "tools": workload.function_tools()}
        if stream:
            self.fixed |= {"stream": True, "stream_options": {"include_usage": True}}

    async def whole(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        async with self.session.post(self.url, data=orjson.dumps(self.fixed | {"messages": messages})) as response:
            response.raise_for_status()
            document = orjson.loads(await response.read())
        choice = document["choices"][0]
        return {
            "message": choice["message"],
            "finish_reason": choice["finish_reason"],
            "usage": document["usage"],
            "ttft_s": None,
        }

    async def streamed(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        began = time.monotonic()
        answer: dict[str, Any] = {"finish_reason": None, "usage": None, "ttft_s": None}
        content: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        async with self.session.post(self.url, data=orjson.dumps(self.fixed | {"messages": messages})) as response:
            response.raise_for_status()
            async for line in response.content:
                if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                    continue
                event = orjson.loads(line[6:])
                answer["usage"] = event.get("usage") or answer["usage"]
                for choice in event["choices"]:
                    answer["finish_reason"] = choice["finish_reason"] or answer["finish_reason"]
                    _merge(choice["delta"], content, calls)
                    if answer["ttft_s"] is None and (content or calls):
                        answer["ttft_s"] = time.monotonic() - began
        message: dict[str, Any] = {"role": "assistant", "content": "".join(content) or None}
        if calls:
            message["tool_calls"] = [calls[index] for index in sorted(calls)]
        return answer | {"message": message}


def _merge(delta: dict[str, Any], content: list[str], calls: dict[int, dict[str, Any]]) -> None:
    if delta.get("content"):
        content.append(delta["content"])
    for part in delta.get("tool_calls") or ():
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = calls.setdefault(part["index"], empty)
        call["id"] = part.get("id") or call["id"]
        call["function"]["name"] += part["function"].get("name") or ""
        call["function"]["arguments"] += part["function"].get("arguments") or ""


async def setup(base_url: str, *, stream: bool, record: Path, kind: type[Run] = Run) -> Callable[[], Awaitable[str]]:
    endpoint = Endpoint(base_url, stream=stream)
    ask = endpoint.streamed if stream else endpoint.whole
    file = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    count = 0

    async def request() -> str:
        nonlocal count
        count += 1
        run = kind(count)
        while True:
            message = await run.ask(ask)
            if not message.get("tool_calls"):
                os.write(file, run.finish(message["content"]))
                return message["content"]
            for call in message["tool_calls"]:
                await run.call(call)

    return request
