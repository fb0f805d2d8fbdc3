"""Comment input: one request to the agent, one line of JSON Lines."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta


class ViewerMessage(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What one viewer wrote. `ts` is a time as the sender writes it; it is shown to nobody and kept."""

    text: str
    viewer: str = "viewer"
    ts: str | float | None = None


class CommentInput(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A request: `text` (single-comment) or `messages` (multi-comments: related messages, one reply), never both.

    `room` and `context` are what the harness's prompt inputs are looked up by; requests of one `session` are turns of
    one conversation, in the order of the file.
    """

    id: Annotated[str, Meta(min_length=1, max_length=200)]
    text: str | None = None
    messages: Annotated[list[ViewerMessage], Meta(min_length=1)] | None = None
    room: str | None = None
    session: str | None = None
    context: dict[str, Any] = {}

    def viewer_messages(self) -> list[ViewerMessage]:
        """The messages, whichever way they were given."""
        return self.messages if self.messages is not None else [ViewerMessage(self.text or "")]
