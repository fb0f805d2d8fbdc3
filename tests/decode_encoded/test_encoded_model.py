"""An answer without ids gets those with which the policy would have said it, or is refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from harnessctl.decode.encoded import EncodedModel
from harnessctl.decode.grammar import Grammars
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import ModelError
from harnessctl.runtime.models.scripted import ScriptedCall, ScriptedError, ScriptedModel, ScriptedReply
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling
from tests.decode.conftest import function_tool

ORDER = function_tool(
    "order",
    {
        "type": "object",
        "properties": {
            "link": {"type": "integer"},
            "to": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}},
            "lines": {"type": "array", "items": {"properties": {"a": {}, "b": {}}}},
        },
    },
)
HI = [{"role": "user", "content": "hi"}]


def ask(codec: TokenCodec, reply: ScriptedReply, **more: Any) -> ModelReply:
    model = EncodedModel(ScriptedModel([reply]), ChatTemplate(), codec)
    given = {"messages": HI, "tools": [ORDER], "sampling": Sampling(), "deadline": float("inf")} | more
    return asyncio.run(model.complete(ModelRequest(**given)))


def said(codec: TokenCodec, reply: ModelReply) -> str:
    return codec.decode(reply.completion_ids or [])


def test_an_answer_has_the_ids_of_its_words(codec: TokenCodec, encoder: PromptEncoder) -> None:
    reply = ask(codec, ScriptedReply(content=" It is 89.\n", reasoning=" cheap "))
    assert (reply.content, reply.reasoning) == ("It is 89.", "cheap")
    assert said(codec, reply) == "<think>\ncheap\n</think>\n\nIt is 89.<|im_end|>"
    assert reply.prompt_ids == encoder.extend([], HI, [ORDER])
    assert reply.logprobs == [0.0] * len(reply.completion_ids or [])


def test_reasoning_in_the_text_is_set_apart(codec: TokenCodec) -> None:
    reply = ask(codec, ScriptedReply(content="<think>look</think>It is 89.", reasoning="first"))
    assert (reply.content, reply.reasoning) == ("It is 89.", "first\nlook")


def test_arguments_are_written_as_the_grammar_has_them(codec: TokenCodec) -> None:
    arguments = {"lines": [{"b": 1, "a": 2}], "note": "x", "to": {"zip": "1", "city": "杭州"}, "link": 3}
    reply = ask(codec, ScriptedReply(tool_calls=[ScriptedCall("order", arguments)]))
    written = '{"link": 3, "to": {"city": "杭州", "zip": "1"}, "lines": [{"a": 2, "b": 1}], "note": "x"}'
    assert reply.tool_calls[0].arguments == written
    assert said(codec, reply) == f'<tool_call>\n{{"name": "order", "arguments": {written}}}\n</tool_call><|im_end|>'
    del arguments["note"]
    reply = ask(codec, ScriptedReply(tool_calls=[ScriptedCall("order", arguments)] * 2, content="Wait."))
    grammars = Grammars(codec.source, vocab_size=300, ends=[codec.end_id], reasoning=False, max_calls=2)
    constraint = grammars.constraint([ORDER])
    assert constraint is not None
    constraint.accept((reply.completion_ids or [])[:-1])


@pytest.mark.parametrize("arguments", ["", "{not json", '"text"', "[1]"])
def test_broken_arguments_stay_what_they_are(codec: TokenCodec, arguments: str) -> None:
    reply = ask(codec, ScriptedReply(tool_calls=[ScriptedCall("order", arguments)]))
    assert reply.tool_calls[0].arguments == (arguments or "{}")
    if arguments.startswith("{n"):
        assert json.dumps(arguments) in said(codec, reply)


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (ScriptedReply(content='<tool_call>\n{"name": "order", "arguments": {}}\n</tool_call>'), "content"),
        (ScriptedReply(content="hi", reasoning="a</think>b"), "reasoning"),
        (ScriptedReply(tool_calls=[ScriptedCall("order", {"note": "</tool_call>"})]), "content|calls"),
    ],
)
def test_words_that_would_be_read_as_something_else_are_refused(
    codec: TokenCodec, reply: ScriptedReply, what: str
) -> None:
    with pytest.raises(ModelError, match=f"would be read as something else: its ({what})") as caught:
        ask(codec, reply)
    assert not caught.value.retryable


def test_without_tools_a_tag_is_a_word(codec: TokenCodec) -> None:
    assert ask(codec, ScriptedReply(content="say <tool_call>"), tools=[]).content == "say <tool_call>"
    assert ask(codec, ScriptedReply(content="say <tool_call>"), tool_choice="none").content == "say <tool_call>"


def test_failures_and_closing_pass_through(codec: TokenCodec) -> None:
    with pytest.raises(ModelError, match="busy") as caught:
        ask(codec, ScriptedReply(error=ScriptedError(message="busy")))
    assert caught.value.retryable
    model = EncodedModel(ScriptedModel([]), ChatTemplate(), codec)
    assert (model.name, model.template) == ("scripted", ChatTemplate().digest)
    asyncio.run(model.aclose())


def test_a_template_without_such_replies_is_a_model_error(codec: TokenCodec) -> None:
    source = "<|im_start|>{{ message.role if message else 'assistant' }}\n\n{{ message.content if message else '' }}"
    model = EncodedModel(ScriptedModel([ScriptedReply(content="hi")]), ChatTemplate(source), codec)
    with pytest.raises(ModelError, match="the chat template does not"):
        asyncio.run(model.complete(ModelRequest(messages=HI, tools=[], sampling=Sampling(), deadline=float("inf"))))
