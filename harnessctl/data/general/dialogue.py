"""Dialogue: the messages of an item, put together turn by turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from harnessctl.data.general.item import GeneralItem, Message


class Call(NamedTuple):
    """A tool call."""

    name: str
    arguments: dict[str, Any]


class Dialogue:
    """A dialogue under way."""

    def __init__(self, system: str) -> None:
        self._messages: list[Message] = [{"role": "system", "content": system}]
        self._last: list[str] = []

    def ask(self, text: str) -> None:
        """The user speaks."""
        self._messages.append({"role": "user", "content": text})

    def answer(self, text: str) -> None:
        """The right answer is a text."""
        self._messages.append({"role": "assistant", "content": text})

    def call(self, calls: Sequence[Call]) -> None:
        """The right answer is these calls."""
        turn = len(self._messages)
        self._last = [f"call_{turn}_{index}" for index in range(len(calls))]
        told = [
            {
                "id": name,
                "type": "function",
                "function": {"name": call.name, "arguments": orjson.dumps(call.arguments).decode()},
            }
            for name, call in zip(self._last, calls, strict=True)
        ]
        self._messages.append({"role": "assistant", "content": None, "tool_calls": told})

    def results(self, results: Sequence[Any]) -> None:
        """What the calls just made gave: a text as it is, anything else as the runtime shows it, compact JSON."""
        for name, result in zip(self._last, results, strict=True):
            content = result if isinstance(result, str) else orjson.dumps(result).decode()
            self._messages.append({"role": "tool", "tool_call_id": name, "content": content})

    def item(self, task: str, tools: list[dict[str, Any]] | None = None) -> GeneralItem:
        """The dialogue as an item of `task`."""
        return GeneralItem(task=task, messages=self._messages, tools=tools or [])
