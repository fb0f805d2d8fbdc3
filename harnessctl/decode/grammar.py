"""Grammar: what the model may say next, so that a tool call, once begun, is a call of an offered tool that fits it.

What always holds: a finished reply under a grammar parses; free text stays free until `<tool_call>` is said. Grammars
are built once per set of tools; each reply takes a copy. Strings, arrays and numbers of arguments are bounded
(`harnessctl.decode.bounds`), so that an untrained model comes to an end.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Literal

import orjson
from llguidance import LLMatcher, LLTokenizer

from harnessctl.decode.bounds import bound_schema
from harnessctl.decode.template import model_json
from harnessctl.errors import ModelError

ToolChoice = Literal["auto", "none", "required"]

MAX_CALLS = 4
KEPT_GRAMMARS = 64
# Spaces as json.dumps puts them; keywords that the grammar library lacks are left to the runtime's own schema check.
_JSON_FORM = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
_TEXT = "/(.|\\n)*/"


def reply_grammar(
    tools: Sequence[dict[str, Any]],
    choice: ToolChoice,
    reply_schema: dict[str, Any] | None,
    *,
    reasoning: bool = False,
    max_calls: int = MAX_CALLS,
) -> str | None:
    """The grammar (llguidance's Lark) of one reply; None where anything may be said.

    `tools` are OpenAI function tools. `reply_schema` makes a reply that is no call JSON that fits; an empty one asks
    for an object of any kind. With `reasoning`, a `<think>` block may stand before what is bound. A reply holds at
    most `max_calls` calls. Raises ModelError for `required` without tools.
    """
    if choice == "required" and not tools:
        raise ModelError("a tool call is required and no tool is offered", retryable=False)
    calls = bool(tools) and choice != "none"
    if not calls and reply_schema is None:
        return _lark(["start: TEXT", f"TEXT: {_TEXT} & ~/(?s:.*)<tool_call>(?s:.*)/"]) if tools else None
    thought = "[thought] " if reasoning else ""
    starts: list[str] = []
    rules: list[str] = []
    if reply_schema is not None and choice != "required":
        starts.append(f"{thought}reply")
        rules.append(f"reply: {_json(reply_schema or {'type': 'object'})}")
    if calls and (reply_schema is not None or choice == "required"):
        starts.append(f'{thought}"<tool_call>" calls')
    elif calls:
        starts += ["TEXT", "trigger calls"]
        # Lazy: the first `<tool_call>` ends the free text, so that TEXT cannot swallow it.
        rules += [f"TEXT: {_TEXT}", 'trigger[lazy]: TEXT "<tool_call>"']
    if any(start.startswith("[thought]") for start in starts):
        rules += ['thought: "<think>" thinking', f'thinking[suffix="</think>"]: {_TEXT}']
    if calls:
        rules += _call_rules(tools, max_calls)
    return _lark([f"start: {' | '.join(starts)}", *rules])


def _call_rules(tools: Sequence[dict[str, Any]], max_calls: int) -> list[str]:
    functions = [tool["function"] for tool in tools]
    more = f' ("\\n<tool_call>" call){{0,{max_calls - 1}}}' if max_calls > 1 else ""
    rules = [
        f"calls: call{more}",
        'call: "\\n" body "\\n</tool_call>"',
        "body: " + " | ".join(f"tool_{index}" for index in range(len(functions))),
    ]
    for index, function in enumerate(functions):
        head = f'{{"name": {model_json(function["name"])}, "arguments": '
        parameters = function.get("parameters") or {"type": "object", "properties": {}}
        rules.append(f'tool_{index}: {json.dumps(head, ensure_ascii=False)} {_json(parameters)} "}}"')
    return rules


def _json(schema: dict[str, Any]) -> str:
    return "%json " + json.dumps({**bound_schema(schema), "x-guidance": _JSON_FORM}, ensure_ascii=False)


def _lark(rules: list[str]) -> str:
    return "\n".join(["%llguidance {}", *rules]) + "\n"


class Constraint:
    """The state of one reply under its grammar."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    def allowed(self) -> bytes:
        """One byte per token of the vocabulary: 0 where the token must not come next."""
        return self._matcher.compute_logit_bias()

    def forced(self) -> list[int]:
        """The tokens that must come next, where there is only one way on."""
        return self._matcher.compute_ff_tokens()

    def accept(self, ids: list[int]) -> None:
        """Move on over tokens that were said; ModelError when the grammar does not have them."""
        if not self._matcher.consume_tokens(ids):
            raise ModelError(f"the grammar refused a token: {self._matcher.get_error()}", retryable=False)


class Grammars:
    """The grammars of one model, built once per (tools, choice, reply schema); the least recently used are dropped.

    `tokenizer` is the tokenizer's JSON; `ends` are the ids that end a reply.
    """

    def __init__(
        self, tokenizer: str, *, vocab_size: int, ends: Sequence[int], reasoning: bool, max_calls: int
    ) -> None:
        self._tokenizer = LLTokenizer(tokenizer, n_vocab=vocab_size, eos_token=list(ends))
        self._reasoning = reasoning
        self._max_calls = max_calls
        self._built: OrderedDict[bytes, LLMatcher | None] = OrderedDict()

    def constraint(
        self, tools: Sequence[dict[str, Any]], choice: str = "auto", reply_schema: dict[str, Any] | None = None
    ) -> Constraint | None:
        """A fresh constraint; None where anything may be said. A tool's name as `choice` asks for one call of it. ModelError names the tool whose schema cannot be kept."""
        key = orjson.dumps([tools, choice, reply_schema])
        if key not in self._built:
            max_calls = self._max_calls
            if choice not in ("auto", "none", "required"):
                tools = [tool for tool in tools if tool["function"]["name"] == choice]
                choice, max_calls = "required", 1
            grammar = reply_grammar(tools, choice, reply_schema, reasoning=self._reasoning, max_calls=max_calls)
            self._built[key] = self._build(grammar, tools, reply_schema)
            if len(self._built) > KEPT_GRAMMARS:
                self._built.popitem(last=False)
        self._built.move_to_end(key)
        matcher = self._built[key]
        return None if matcher is None else Constraint(matcher.deep_copy())

    def _build(
        self, grammar: str | None, tools: Sequence[dict[str, Any]], reply_schema: dict[str, Any] | None
    ) -> LLMatcher | None:
        if grammar is None:
            return None
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        if not matcher.is_error():
            return matcher
        for tool in tools:
            alone = reply_grammar([tool], "required", None)
            is_bad, problems = LLMatcher.validate_grammar_with_warnings(alone or "", self._tokenizer)
            if is_bad:
                raise ModelError(
                    f"no grammar can be made of the parameters of tool {tool['function']['name']!r}: {problems[0]}",
                    retryable=False,
                    hint="simplify the schema: no remote $ref, no look-around in patterns",
                )
        what = "the reply's schema" if reply_schema is not None else "the tools"
        raise ModelError(f"no grammar can be made of {what}: {matcher.get_error()}", retryable=False)
