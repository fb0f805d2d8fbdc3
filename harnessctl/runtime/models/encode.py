"""Body: a model request as the JSON that an OpenAI-compatible endpoint takes.

What always holds: the bytes equal `orjson.dumps(body_document(...))`. What the requests of one `cache_key` share
(`messages[:stable]` and the tools) is encoded once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import orjson

from harnessctl.runtime.protocols import ModelRequest

_REASONING = "reasoning_content"


def body_document(
    request: ModelRequest, *, model: str, fixed: Mapping[str, Any], send_reasoning: bool = True
) -> dict[str, Any]:
    """The body as a document. `fixed` is what every call carries; a null in it takes a sampling key out.

    Without `send_reasoning` the model's past reasoning is left out of the messages.
    """
    messages = request.messages if send_reasoning else _without_reasoning(request.messages)
    document: dict[str, Any] = {"model": model, "messages": messages}
    if request.tools:
        document["tools"] = request.tools
    return document | _rest(request, fixed)


def _without_reasoning(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in message.items() if key != _REASONING} if _REASONING in message else message
        for message in messages
    ]


def _rest(request: ModelRequest, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Every key after model, messages and tools."""
    sampling = request.sampling
    rest: dict[str, Any] = {}
    if request.tools and request.tool_choice != "auto":
        choice = request.tool_choice
        is_name = choice not in ("none", "required")
        rest["tool_choice"] = {"type": "function", "function": {"name": choice}} if is_name else choice
    if sampling.temperature is not None:
        rest["temperature"] = sampling.temperature
    if sampling.top_p is not None:
        rest["top_p"] = sampling.top_p
    if sampling.max_tokens is not None:
        rest["max_tokens"] = sampling.max_tokens
    if sampling.seed is not None:
        rest["seed"] = sampling.seed
    if sampling.stop:
        rest["stop"] = sampling.stop
    for key, value in fixed.items():
        if value is None:
            rest.pop(key, None)
        else:
            rest[key] = value
    return rest


class BodyEncoder:
    """Encodes requests to one model. It keeps at most `budget` bytes of shared encodings, the latest used ones."""

    def __init__(
        self, *, model: str, fixed: Mapping[str, Any], send_reasoning: bool = True, budget: int = 8 << 20
    ) -> None:
        self._head = b'{"model":' + orjson.dumps(model) + b',"messages":['
        self._fixed = dict(fixed)
        self._send_reasoning = send_reasoning
        self._budget = budget
        self._used = 0
        self._shared: OrderedDict[tuple[str, int], tuple[bytes, bytes]] = OrderedDict()

    def encode(self, request: ModelRequest) -> bytes:
        """The body of `request`; orjson.JSONEncodeError (a TypeError) when a message holds what JSON cannot."""
        stable, tools = self._shared_parts(request)
        fresh = self._messages(request.messages[request.stable :])
        rest = orjson.dumps(_rest(request, self._fixed))[1:]
        return b"".join(
            (
                self._head,
                stable,
                b"," if stable and fresh else b"",
                fresh,
                b"]",
                tools,
                b"," if len(rest) > 1 else b"",
                rest,
            )
        )

    def _messages(self, messages: list[dict[str, Any]]) -> bytes:
        """The encoded messages with commas between them."""
        return orjson.dumps(messages if self._send_reasoning else _without_reasoning(messages))[1:-1]

    def _shared_parts(self, request: ModelRequest) -> tuple[bytes, bytes]:
        """Encoded `messages[:stable]` without brackets, and the tools with their key and a comma before it."""
        key = (request.cache_key, request.stable)
        if request.cache_key and (found := self._shared.get(key)) is not None:
            self._shared.move_to_end(key)
            return found
        stable = self._messages(request.messages[: request.stable])
        tools = b',"tools":' + orjson.dumps(request.tools) if request.tools else b""
        if request.cache_key:
            self._shared[key] = stable, tools
            self._used += len(stable) + len(tools)
            while self._used > self._budget:
                _, dropped = self._shared.popitem(last=False)
                self._used -= len(dropped[0]) + len(dropped[1])
        return stable, tools
