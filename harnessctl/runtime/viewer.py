"""Viewer text: what viewers wrote, cleaned as all outside text is. It is data and is never rendered.

The original stays in the record.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.runtime.outside import clean_text

MAX_VIEWER_NAME_CHARS = 64
#: A viewer without a name.
ANONYMOUS = "viewer"
_TOO_DEEP = "<nested too deeply>"


def clean_messages(request: CommentInput, max_chars: int, warnings: list[str]) -> list[dict[str, Any]]:
    """The request's messages as {viewer, text, ts}, cleaned; `max_chars` holds for each."""
    if request.messages is None:
        return [{"viewer": ANONYMOUS, "text": clean_text(request.text or "", max_chars, warnings), "ts": None}]
    if len(request.messages) == 1:
        return [_clean_message(request.messages[0], max_chars, warnings, "message")]
    return [_clean_message(m, max_chars, warnings, f"message {i}") for i, m in enumerate(request.messages, 1)]


def recordable_request(request: CommentInput) -> dict[str, Any]:
    """The request as it was given, as plain data; in place of a Python object stands the name of its type."""
    try:
        return msgspec.to_builtins(request, enc_hook=lambda value: f"<{type(value).__name__}>")
    except RecursionError:
        return recordable_request(msgspec.structs.replace(request, context=dict.fromkeys(request.context, _TOO_DEEP)))


def _clean_message(message: ViewerMessage, max_chars: int, warnings: list[str], who: str) -> dict[str, Any]:
    viewer = message.viewer
    if viewer != ANONYMOUS:
        viewer = clean_text(viewer, MAX_VIEWER_NAME_CHARS, warnings, f"{who}: viewer name").replace("\n", " ")
    ts = message.ts if not isinstance(message.ts, str) else clean_text(message.ts, MAX_VIEWER_NAME_CHARS, [])
    return {"viewer": viewer, "text": clean_text(message.text, max_chars, warnings, who), "ts": ts}
