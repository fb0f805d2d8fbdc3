"""Chat template: messages become segments of text, each either control or data.

What always holds: only the template's own literal text is control. A value put into it (viewer text, a tool's
description or result, a role's content) is data, whatever it looks like, because the rendered text holds a numbered
slot in its place and never the value itself. Messages are rendered one by one, each without sight of the others, so
the segments of a conversation begin with the segments of any beginning of it.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
import orjson
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harnessctl.errors import ModelError, UsageError
from harnessctl.storage import digest

ROLES = ("system", "user", "assistant", "tool")
_SLOT = re.compile("\0([0-9]+)\0")


class Segment(NamedTuple):
    """A stretch of the prompt. Only `control` text may become special tokens."""

    text: str
    control: bool


def model_json(value: Any) -> str:
    """JSON as the model reads and writes it: `{"a": 1, "b": "文"}`. The grammar keeps to the same separators."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


@jinja2.pass_context
def _set_apart(context: jinja2.runtime.Context, value: Any) -> str:
    """Keep the value of a `{{ }}` and leave the number of its slot in the text."""
    slots = context["slots"]
    slots.append(str(value))
    return f"\0{len(slots) - 1}\0"


class ChatTemplate:
    """A Jinja template of one message, in which literal text is control and every `{{ value }}` is data.

    In scope: `message` ({role, content, calls, reasoning}, or none for the opening of a reply), `tools` (list of
    {description, call, more}; none but with the first message), `first`, the filter `json`. Macros are not
    supported: what they print would be set apart twice. `end` is the special token that ends a message.
    """

    def __init__(self, source: str | None = None, *, end: str = "<|im_end|>") -> None:
        self.source = files("harnessctl.decode").joinpath("chat.jinja").read_text("utf-8") if source is None else source
        self.end = end
        environment = ImmutableSandboxedEnvironment(
            undefined=jinja2.StrictUndefined, finalize=_set_apart, trim_blocks=True, lstrip_blocks=True
        )
        environment.filters["json"] = model_json
        if "\0" in self.source or re.search(r"\{%-?\s*macro\b", self.source):
            raise UsageError("the chat template holds a macro or a NUL character", hint="write the macro's text out")
        try:
            self._template = environment.from_string(self.source)
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"chat template:{error.lineno}: {error.message}") from error

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 over all that decides how messages become segments."""
        return digest({"source": self.source, "end": self.end})

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = (), *, first: bool = True
    ) -> list[list[Segment]]:
        """The segments of each message. `first`: the list begins a conversation, and tells of the tools.

        Tools are told in the leading system message; one is made for them where there is none, and is counted to the
        first message. Raises ModelError for a message that is not in OpenAI chat form.
        """
        shown = [tool_view(tool) for tool in tools] if first else []
        rendered: list[list[Segment]] = []
        for index, message in enumerate(messages):
            view = message_view(message, index)
            opening = first and index == 0
            if opening and shown and view["role"] != "system":
                made = self._segments({"role": "system", "content": "", "calls": [], "reasoning": ""}, shown, True)
                rendered.append(made + self._segments(view, None, False))
            else:
                rendered.append(self._segments(view, shown if opening else None, opening))
        return rendered

    def reply_opening(self) -> list[Segment]:
        """The segments after which the model begins to speak."""
        return self._segments(None, None, False)

    def _segments(
        self, message: dict[str, Any] | None, tools: list[dict[str, Any]] | None, first: bool
    ) -> list[Segment]:
        slots: list[str] = []
        try:
            text = self._template.render(message=message, tools=tools, first=first, slots=slots)
        except jinja2.TemplateError as error:
            raise ModelError(f"chat template: {error}", retryable=False) from error
        pieces = _SLOT.split(text)
        segments = [Segment(slots[int(piece)] if odd % 2 else piece, not odd % 2) for odd, piece in enumerate(pieces)]
        return [segment for segment in segments if segment.text]


def message_view(message: Mapping[str, Any], index: int) -> dict[str, Any]:
    """A message in OpenAI chat form as the template sees it; `index` is its place, for the error."""
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise ModelError(f"message {index}: role {role!r}; allowed {', '.join(ROLES)}", retryable=False)
    if not isinstance(content, str | None):
        raise ModelError(
            f"message {index}: content is {type(content).__name__}; the local model reads text only", retryable=False
        )
    calls = [_call_view(call.get("function") or {}) for call in message.get("tool_calls") or []]
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    return {"role": role, "content": content or "", "calls": calls, "reasoning": reasoning}


def _call_view(function: Mapping[str, Any]) -> dict[str, Any]:
    """A call as the model would have written it; arguments that are not JSON stay the text that they are."""
    arguments = function.get("arguments", "{}")
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            pass
    return {"name": function.get("name", ""), "arguments": arguments}


def tool_view(tool: Mapping[str, Any]) -> dict[str, Any]:
    """An OpenAI function tool as the template sees it.

    `call` looks like a call, with each argument's schema in the place of its value; `more` is what the schema says
    beyond its properties ($defs, combinations), mostly nothing.
    """
    function = tool.get("function") or {}
    parameters = dict(function.get("parameters") or {})
    required = parameters.pop("required", [])
    arguments = {
        name: schema if name in required or not isinstance(schema, dict) else {**schema, "optional": True}
        for name, schema in parameters.pop("properties", {}).items()
    }
    more = {key: value for key, value in parameters.items() if key not in ("type", "additionalProperties", "$schema")}
    call = {"name": function.get("name", ""), "arguments": arguments}
    return {"description": function.get("description", ""), "call": call, "more": more}
