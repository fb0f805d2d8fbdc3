"""Outside text: what viewers, worlds, tools and hooks' programs wrote, made safe to show to a model.

What always holds of cleaned text: no control character but newline and tab, no bidirectional override or isolate, no
invisible tag character, no lone surrogate, no chat-template token, at most `max_chars` code points where there is a
bound. Each change is named in a warning. Marks that right-to-left languages need (LRM, RLM, ALM) stay.

Authors' text (prompts, skills, hook messages) and the model's own words are no outside text and stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BIDI = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_TAGS = re.compile(r"[\U000e0000-\U000e007f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NAMES = (
    r"s|bos|eos|sop|eop|pad|unk|mask|sys|think(?:ing)?|tools?|tool_(?:call|response|result)s?|function_(?:call|result)s?"
    r"|(?:start|end)_of_turn|(?:begin|beginning|end)_of_(?:text|sentence)|arg_(?:key|value)"
)
_TOKEN = re.compile(
    r"<[|\uff5c][^|\uff5c<>\[\]\n]{1,40}[|\uff5c]>"
    rf"|</?(?:{_NAMES})>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|gMASK|BOS|EOS)\]",
    re.IGNORECASE,
)
#: One search that nearly all text fails, before any of the above is tried. Plain lines do not even come to it.
_SUSPICIOUS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
    r"|<[|\uff5c/a-zA-Z]|\[[/a-zA-Z]"
)
#: The same of encoded JSON, piece by piece: each begins with a byte that is found fast, where one search for all is slow.
_ESCAPE = re.compile(rb"\\[bfru]")
_BRACKET = re.compile(rb"\[(?:/|(?!true|false|null)[A-Za-z])")
_WIDE = [
    (b"\xe2", re.compile(rb"\xe2(?:\x80[\xaa-\xae]|\x81[\xa6-\xa9])")),  # bidirectional
    (b"\xc2", re.compile(rb"\xc2[\x80-\x9f]")),  # control characters
    (b"\xf3", re.compile(rb"\xf3\xa0[\x80\x81]")),  # tags
]


def clean_text(text: str, max_chars: int | None, warnings: list[str], who: str = "message") -> str:
    """`text` as a model may see it; what was changed is appended to `warnings`, named by `who`.

    A chat-template token (`<|im_end|>`) gets a space after its first character, so that no tokenizer takes it for one.
    """
    if max_chars is not None and len(text) > max_chars:
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


def clean_value(value: Any, warnings: list[str], who: str) -> Any:
    """A copy of a JSON value with every string in it cleaned, keys too; `who` names the value in warnings."""
    if isinstance(value, str):
        return clean_text(value, None, warnings, who)
    if isinstance(value, dict):
        return {
            clean_text(key, None, warnings, f"{who}: a key"): clean_value(item, warnings, f"{who}/{key}")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [clean_value(item, warnings, f"{who}/{number}") for number, item in enumerate(value)]
    return value


def may_be_unclean(encoded: bytes) -> bool:
    """Whether cleaning could change anything in JSON as orjson wrote it; a few microseconds for thousands of bytes."""
    if b"<" in encoded or b"\x7f" in encoded or _BRACKET.search(encoded) is not None:
        return True
    if b"\\" in encoded and _ESCAPE.search(encoded) is not None:
        return True
    if encoded.isascii():
        return False
    return any(first in encoded and pattern.search(encoded) is not None for first, pattern in _WIDE)


def clean_json(value: Any, warnings: list[str], who: str) -> str:
    """A JSON value as the text that a model reads: a string as it is, anything else encoded; cleaned."""
    if isinstance(value, str):
        return clean_text(value, None, warnings, who)
    encoded = orjson.dumps(value)
    text = encoded.decode()
    return clean_text(text, None, warnings, who) if may_be_unclean(encoded) else text
