"""Encoding: what data/ asks of whoever turns messages into ids and back; `decode.prompt.PromptEncoder` does all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Decoder(Protocol):
    """Reads ids; `end_id` is the token that ends a message."""

    end_id: int

    def decode(self, ids: list[int]) -> str:
        """The text of the ids, added tokens spelled out."""
        ...


class ChatEncoder(Decoder, Protocol):
    """Writes conversations as ids. Messages and calls are in OpenAI chat form."""

    def extend(
        self, ids: Sequence[int], messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> list[int]:
        """`ids`, the messages that come after them, and the opening of a reply; `tools` are told where `ids` is empty."""
        ...

    def reply(
        self, content: str | None, reasoning: str | None = None, tool_calls: Sequence[Mapping[str, Any]] = ()
    ) -> list[int]:
        """The ids of what an assistant says after the opening, the end id included."""
        ...


class TextEncoder(Decoder, Protocol):
    """Writes text as ids: the template's own, in which special tokens are tokens, and anybody's, in which they are not."""

    def control(self, text: str) -> list[int]:
        """The ids of the template's own text."""
        ...

    def data(self, text: str) -> list[int]:
        """The ids of anybody's text."""
        ...
