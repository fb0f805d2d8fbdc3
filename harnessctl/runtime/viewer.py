"""Viewer text: what a viewer wrote, made safe to show to a model. It is data and is never rendered.

What always holds of cleaned text: no control character but newline and tab, no bidirectional override or isolate, no
invisible tag character, no lone surrogate, no chat-template token, at most `max_chars` code points. The original stays
in the record; each change is named in a warning. Marks that right-to-left languages need (LRM, RLM, ALM) stay.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from harnessctl.records.comment import CommentInput, ViewerMessage

MAX_VIEWER_NAME_CHARS = 64
#: A viewer without a name.
ANONYMOUS = "viewer"

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BIDI = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_TAGS = re.compile(r"[\U000e0000-\U000e007f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_TOKEN = re.compile(
    r"<[|\uff5c][^|\uff5c<>\n]{1,40}[|\uff5c]>"
    r"|</?(?:s|bos|eos|think|tool_call|tool_response|tools|start_of_turn|end_of_turn)>"
    r"|\[/?INST\]",
    re.IGNORECASE,
)
#: One search that nearly all text fails, before any of the above is tried. Plain lines do not even come to it.
_SUSPICIOUS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
    r"|<[|\uff5c/a-zA-Z]|\[/?INST",
    re.IGNORECASE,
)


def clean_text(text: str, max_chars: int, warnings: list[str], who: str = "message") -> str:
    """`text` as a model may see it; what was changed is appended to `warnings`, named by `who`.

    A chat-template token (`<|im_end|>`) gets a space after its first character, so that no tokenizer takes it for one.
    """
    if len(text) > max_chars:
        warnings.append(f"{who}: cut from {len(text)} to {max_chars} characters (max_message_chars)")
        text = text[:max_chars]
    if (text.isprintable() and "<" not in text and "[" not in text) or _SUSPICIOUS.search(text) is None:
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for pattern, replacement, what in (
        (_CONTROL, "", "control character"),
        (_BIDI, "", "bidirectional override"),
        (_TAGS, "", "invisible tag character"),
        (_SURROGATE, "\ufffd", "lone surrogate"),
    ):
        text, count = pattern.subn(replacement, text)
        if count:
            verb = "replaced" if replacement else "removed"
            warnings.append(f"{who}: {count} {what}{'s' if count > 1 else ''} {verb}")
    text, count = _TOKEN.subn(lambda found: f"{found[0][0]} {found[0][1:]}", text)
    if count:
        warnings.append(f"{who}: {count} chat-template token{'s' if count > 1 else ''} broken up")
    return text


def clean_messages(request: CommentInput, max_chars: int, warnings: list[str]) -> list[dict[str, Any]]:
    """The request's messages as {viewer, text, ts}, cleaned; `max_chars` holds for each."""
    if request.messages is None:
        return [{"viewer": ANONYMOUS, "text": clean_text(request.text or "", max_chars, warnings), "ts": None}]
    if len(request.messages) == 1:
        return [_clean_message(request.messages[0], max_chars, warnings, "message")]
    return [_clean_message(m, max_chars, warnings, f"message {i}") for i, m in enumerate(request.messages, 1)]


def recordable_request(request: CommentInput) -> dict[str, Any]:
    """The request as it was given, as plain data; in place of a Python object stands the name of its type."""
    return msgspec.to_builtins(request, enc_hook=lambda value: f"<{type(value).__name__}>")


def _clean_message(message: ViewerMessage, max_chars: int, warnings: list[str], who: str) -> dict[str, Any]:
    viewer = message.viewer
    if viewer != ANONYMOUS:
        viewer = clean_text(viewer, MAX_VIEWER_NAME_CHARS, warnings, f"{who}: viewer name").replace("\n", " ")
    return {"viewer": viewer, "text": clean_text(message.text, max_chars, warnings, who), "ts": message.ts}
