"""Item: one dialogue of a general task with its right answers, and whether an answer is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

Message = dict[str, Any]


class GeneralItem(msgspec.Struct, frozen=True, kw_only=True):
    """A dialogue in OpenAI chat form whose assistant messages are the right answers.

    Turn `i` is the i-th assistant message. Several turns in one dialogue share the reading of what stands before them.
    `tools` are OpenAI function tools.
    """

    task: str
    messages: list[Message]
    tools: list[dict[str, Any]] = []

    @property
    def turns(self) -> list[int]:
        """Where in `messages` the answers stand."""
        return [index for index, message in enumerate(self.messages) if message["role"] == "assistant"]

    def before(self, turn: int) -> list[Message]:
        """What the model reads before it gives the answer of `turn`; earlier answers are the right ones."""
        return self.messages[: self.turns[turn]]

    def answer(self, turn: int) -> Message:
        """The right answer of `turn`, an assistant message."""
        return self.messages[self.turns[turn]]


def is_right(item: GeneralItem, turn: int, answer: Mapping[str, Any]) -> bool:
    """Whether `answer`, an assistant message in OpenAI chat form, is the right one: the same text (space around it
    aside) and the same calls in any order, arguments compared as JSON."""
    return _said(answer) == _said(item.answer(turn))


def _said(message: Mapping[str, Any]) -> tuple[str, list[bytes]]:
    calls = [_call(call.get("function") or {}) for call in message.get("tool_calls") or []]
    return (message.get("content") or "").strip(), sorted(calls)


def _call(function: Mapping[str, Any]) -> bytes:
    arguments = function.get("arguments")
    try:
        arguments = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        pass  # not JSON: compared as the text that it is, and equal to no right answer
    return orjson.dumps([function.get("name"), arguments], option=orjson.OPT_SORT_KEYS)
