"""Output: what the model wrote becomes reasoning, text and tool calls.

What always holds: nothing that was written is lost; a call that is cut off or broken is kept as it stands, for the
runtime to refuse. Only calls that a grammar did not keep, or that the limit on tokens cut, can be broken.
"""

from __future__ import annotations

import re

import msgspec
import orjson

from harnessctl.decode.template import model_json
from harnessctl.runtime.reasoning import split_reasoning

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_CUT_TAG = re.compile("<(t(o(o(l(_(c(a(l(l)?)?)?)?)?)?)?)?)?$")
_NAME = re.compile(r'"name"\s*:\s*"((?:[^"\\]|\\.)*)"')
_ARGUMENTS = re.compile(r'"arguments"\s*:\s*')


class WrittenCall(msgspec.Struct, frozen=True):
    """A call as the model wrote it; `arguments` is text that may not be JSON."""

    name: str
    arguments: str


class Output(msgspec.Struct):
    """A reply in its parts; `content` is null where nothing but calls was said."""

    content: str | None
    calls: list[WrittenCall]
    reasoning: str | None


def parse_output(text: str, *, calls: bool, is_cut: bool = False) -> Output:
    """The parts of a reply. `calls` false: `<tool_call>` is ordinary text, because none was offered or allowed.

    `is_cut`: the limit on tokens ended the text, so that its tail may be the beginning of a tag and no words.
    """
    said, thought = split_reasoning(text)
    if calls and is_cut:
        said = _CUT_TAG.sub("", said)
    found = [_written_call(match[1].strip()) for match in _CALL.finditer(said)] if calls else []
    content = (_CALL.sub("", said) if calls else said).strip()
    return Output(content=content or None, calls=found, reasoning=thought)


def _written_call(body: str) -> WrittenCall:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if isinstance(document, dict) and isinstance(document.get("name"), str):
        arguments = document.get("arguments", {})
        return WrittenCall(document["name"], arguments if isinstance(arguments, str) else model_json(arguments))
    name, arguments = _NAME.search(body), _ARGUMENTS.search(body)
    return WrittenCall(name[1] if name else "", body[arguments.end() :] if arguments else body)
