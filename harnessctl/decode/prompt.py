"""Prompt: what the model reads and says, as ids, by a template and a tokenizer.

What always holds: nothing that has been read or said is encoded again: a prompt begins with the ids that it is given.
Where what was said is what `reply` makes of it, so do the ids of the whole conversation rendered from nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.decode.template import ChatTemplate, Segment
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import UsageError
from harnessctl.runtime.protocols import ModelRequest


class PromptEncoder:
    """Messages as ids. `template` is the digest of the chat template, `end_id` the token that ends a message."""

    def __init__(self, template: ChatTemplate, codec: TokenCodec) -> None:
        self._template = template
        self._codec = codec
        self.template: str = template.digest
        self.end_id: int = codec.end_id
        self._opening = codec.encode(template.reply_opening())

    def prompt(self, request: ModelRequest) -> list[int]:
        """The ids of everything that the model reads for this request, the opening of its reply included."""
        known = request.prefix_messages if request.prefix_ids else 0
        return self.extend(request.prefix_ids or (), request.messages[known:], request.tools)

    def extend(
        self, ids: Sequence[int], messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> list[int]:
        """`ids`, the messages (OpenAI chat form) that come after them, and the opening of a reply.

        `tools` are told where `ids` is empty: the messages begin a conversation then. Ids that do not end a message (a
        reply cut off by a limit, or ended by another end token) are ended first. ModelError for a message that is not in
        chat form.
        """
        whole, template = list(ids), self._template
        if whole and whole[-1] != self.end_id:
            whole += self._codec.encode([Segment(template.end, control=True)])
        for segments in template.render(messages, tools, first=not whole):
            whole += self._codec.encode(segments)
        return whole + self._opening

    def reply(
        self, content: str | None, reasoning: str | None = None, tool_calls: Sequence[Mapping[str, Any]] = ()
    ) -> list[int]:
        """The ids of what an assistant says after the opening, the end id included, as the template renders them.

        `tool_calls` are in OpenAI form. UsageError for a template whose assistant's message does not begin with the
        opening of a reply, or does not end with the end token: no reply could be the beginning of the next prompt.
        """
        message = {"role": "assistant", "content": content, "reasoning": reasoning, "tool_calls": list(tool_calls)}
        (segments,) = self._template.render([message], first=False)
        ids = self._codec.encode(segments)
        start = len(self._opening)
        if ids[:start] != self._opening:
            raise UsageError(
                "the chat template does not begin an assistant's message with the opening of a reply: "
                f"got {self.decode(ids[: start + 4])!r}; the opening is {self.decode(self._opening)!r}",
                hint="write both with the same text, and what follows it (reasoning, say) after a line break",
            )
        if ids[-1] != self.end_id:
            raise UsageError(
                f"the chat template does not end an assistant's message with {self._template.end!r}: "
                f"it ends with {self.decode(ids[-4:])!r}",
                hint="let the next message begin with the line break in the place of ending this one with it",
            )
        return ids[start:]

    def control(self, text: str) -> list[int]:
        """The ids of the template's own text, in which special tokens are tokens."""
        return self._codec.encode([Segment(text, control=True)])

    def data(self, text: str) -> list[int]:
        """The ids of anybody's text, in which they are not."""
        return self._codec.encode_data(text)

    def decode(self, ids: list[int]) -> str:
        """The text of the ids, added tokens spelled out."""
        return self._codec.decode(ids)
