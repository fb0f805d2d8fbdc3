"""Preflight: whether a chat template and a tokenizer can be trained with, tried before anything is spent.

A template must only ever add: the ids of a turn begin with the ids of the turn before and of what was said in it. One
that drops earlier reasoning or renders history anew trains the policy on contexts that it never sees when it runs. A
tokenizer must keep the template's tokens single and give every text back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from harnessctl.data.encoding import ChatEncoder, Decoder, TextEncoder
from harnessctl.errors import TrainingError, UsageError

#: How much of a text an error shows before and behind the place where two differ.
_SHOWN = 30


def _call(name: str, arguments: str, call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _said(content: str | None, thought: str | None = None, *calls: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = list(calls)
    return message


#: A tool, for the first message.
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_product",
            "description": "Looks a product up.",
            "parameters": {"type": "object", "properties": {"link": {"type": "integer"}}, "required": ["link"]},
        },
    }
]

#: What is tried: reasoning, two parallel calls, their results, a reply that is sent back, a second question.
DIALOGUE: list[dict[str, Any]] = [
    {"role": "system", "content": "You are the host of a live room."},
    {"role": "user", "content": "3号和4号多少钱?"},
    _said(
        None,
        "Two prices are asked for.\nLook both up.",
        _call("get_product", '{"link": 3}', "call_a"),
        _call("get_product", '{"link": 4}', "call_b"),
    ),
    {"role": "tool", "tool_call_id": "call_a", "content": '{"name": "防晒霜", "price": 89}'},
    {"role": "tool", "tool_call_id": "call_b", "content": "error: timeout"},
    _said("One moment.", None, _call("get_product", '{"link": 4}', "call_c")),
    {"role": "tool", "tool_call_id": "call_c", "content": '{"name": "hat", "price": 25}'},
    _said("Number 3 is 89 yuan and number 4 is 25 yuan, and both are well worth it. ", "Say both prices."),
    {"role": "user", "content": "Too long. Say it shorter."},
    _said("89 and 25.", "Leave the praise out."),
    {"role": "user", "content": "\n\nthanks  "},
    _said("  You are welcome!\n"),
    {"role": "user", "content": "bye"},
]


def check_template(encoder: ChatEncoder) -> None:
    """Try a template on `DIALOGUE`. TrainingError names the first turn that does not begin with the one before and what
    was said in it, and shows the first text that differs."""
    before: list[int] = []
    since = 0
    for place, message in enumerate([*DIALOGUE, _said(None)]):
        if message["role"] != "assistant":
            continue
        turn = sum(one["role"] == "assistant" for one in DIALOGUE[:place]) + 1
        read = encoder.extend([], DIALOGUE[:place], TOOLS)
        if read[: len(before)] != before:
            raise TrainingError(
                f"the chat template does not keep what stood before: turn {turn} (message {place}) does not begin with turn "
                f"{turn - 1} and what was said in it (message {since}): {_difference(before, read, encoder)}",
                hint="use a template that renders each message by itself and drops nothing, such as the shipped one",
            )
        if turn > 1 and encoder.extend(before, DIALOGUE[since + 1 : place]) != read:
            raise TrainingError(
                f"the chat template renders turn {turn} otherwise from its beginning than from where turn {turn - 1} ended: "
                f"{_difference(encoder.extend(before, DIALOGUE[since + 1 : place]), read, encoder)}",
                hint="a message must not look at other messages, nor end with what belongs to the next",
            )
        try:
            said = encoder.reply(message["content"], message.get("reasoning_content"), message.get("tool_calls", ()))
        except UsageError as error:
            raise TrainingError(f"turn {turn} (message {place}): {error.message}", hint=error.hint) from error
        if not said or said[-1] != encoder.end_id or said.count(encoder.end_id) != 1:
            raise TrainingError(
                f"turn {turn} (message {place}): what is said does not end with the one end token "
                f"{encoder.decode([encoder.end_id])!r}; got {encoder.decode(said)!r}"
            )
        before, since = read + said, place


#: Texts that tokenizers are known to lose: normalised forms, lone marks, runs of white space, bytes of all lengths.
TEXTS = (
    "",
    " ",
    "  two, \t tab, \n\n\n lines \r\n",
    " leading and trailing ",
    "3号链接 39.90元/件",
    "ﬁ ½ Å Å é é",
    "👩‍👧‍👦 🇨🇳 \u200b\u00a0\u3000|",
    "𝔘𝔫𝔦 ﷽ \u202eabc\u202c",
    "\x00\x01\x7f",
    '{"name": "x", "arguments": {"a": [1, -2.5e-3, null]}}',
    "<think>\n</think> <tool_call> </tool_call>",
    "\ufffd",
)


def check_tokenizer(encoder: TextEncoder, control: Sequence[str]) -> None:
    """Try a tokenizer. `control` are the texts that the template means as one token each, such as `<|im_start|>`.

    TrainingError names the control token that is none, or that anybody's text can say, and the text that does not come
    back as it was.
    """
    for text in control:
        ids = encoder.control(text)
        if len(ids) != 1:
            raise TrainingError(
                f"the tokenizer reads the control token {text!r} as {len(ids)} tokens",
                hint="add it to the tokenizer as a special token, or give the template that the model was trained with",
            )
        if ids[0] in encoder.data(f"a {text} b"):
            raise TrainingError(f"the tokenizer lets anybody's text say the control token {text!r}")
    for text in (*TEXTS, *control):
        found = encoder.decode(encoder.data(text))
        if found != text:
            same = _common(text, found)
            raise TrainingError(
                f"the tokenizer does not give a text back: {_around(text, same)!r} comes back as {_around(found, same)!r}",
                hint="a tokenizer that normalises, or has no bytes to fall back on, cannot carry what viewers write",
            )


def _difference(wanted: list[int], found: list[int], decoder: Decoder) -> str:
    """Where two lists of ids first differ, as text."""
    same = _common(wanted, found)
    expected, got = decoder.decode(wanted[same:]), decoder.decode(found[same:])
    shown = decoder.decode(wanted[:same])[-_SHOWN:]
    return f"after {shown!r} stands {got[:_SHOWN]!r} where {expected[:_SHOWN]!r} was read or said"


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _around(text: str, place: int) -> str:
    return text[max(0, place - _SHOWN) : place + _SHOWN]
