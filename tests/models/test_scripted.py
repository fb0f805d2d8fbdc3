from __future__ import annotations

import asyncio
import json
import random

import pytest
from canned_server import request

from harnessctl.errors import ModelError, RecordError
from harnessctl.runtime.models.scripted import (
    Conversation,
    ScriptedCall,
    ScriptedError,
    ScriptedModel,
    ScriptedReply,
    read_script,
)
from harnessctl.runtime.protocols import ModelToolCall


def script_file(project, *lines):
    return (
        project({"script.jsonl": "".join((json.dumps(x) if isinstance(x, dict) else x) + "\n" for x in lines)})
        / "script.jsonl"
    )


def said(model, *requests):
    """What the model says to these requests, one after the other: the text, the calls' names or the error."""

    async def one(asked):
        try:
            reply = await model.complete(asked)
        except ModelError as error:
            return error.message
        return reply.content or [call.name for call in reply.tool_calls]

    async def main():
        return [await one(asked) for asked in requests]

    return asyncio.run(main())


def conversation(*turns):
    """A request whose messages are `user: ...`, `assistant: ...` and so on."""
    return request(messages=[dict(zip(("role", "content"), turn.split(": ", 1), strict=True)) for turn in turns])


def test_replies_in_order(project):
    path = script_file(
        project,
        {"tool_calls": [{"name": "get", "arguments": {"id": 3}}]},
        {"error": {"message": "429", "retry_after": 1, "times": 2}},
        {"content": "39.90"},
    )
    model = ScriptedModel.from_file(path)
    assert said(model, *[request()] * 5) == [
        ["get"],
        "429",
        "429",
        "39.90",
        "the script has run out: it has 4 replies and this is call 5",
    ]


def test_a_reply_has_everything_a_model_can_give():
    reply = ScriptedReply(
        content="c",
        reasoning="r",
        tool_calls=[ScriptedCall("get", {"id": 3}), ScriptedCall("get", '{"broken', id="x"), ScriptedCall("get")],
        ttft_s=0.5,
    )
    given = asyncio.run(ScriptedModel([reply]).complete(request()))
    assert (given.content, given.reasoning, given.finish_reason, given.ttft_s) == ("c", "r", "tool_calls", 0.5)
    assert given.tool_calls == [
        ModelToolCall("call_1_0", "get", '{"id":3}'),
        ModelToolCall("x", "get", '{"broken'),
        ModelToolCall("call_1_2", "get", "{}"),
    ]


def test_an_error_carries_what_the_loop_decides_by():
    model = ScriptedModel([ScriptedReply(error=ScriptedError(message="no", retryable=False, retry_after=2))])
    with pytest.raises(ModelError) as caught:
        asyncio.run(model.complete(request()))
    assert (caught.value.retryable, caught.value.retry_after) == (False, 2)


PRICE = Conversation(match="price", replies=[ScriptedReply(content="look"), ScriptedReply(content="39.90")])
SIZE = Conversation(match="size", replies=[ScriptedReply(content="large")])


def test_conversations_are_told_apart_by_what_the_viewer_says():
    model = ScriptedModel([PRICE, SIZE])
    assert said(
        model,
        conversation("system: s", "user: the size?"),
        conversation("user: the price?", "assistant: look", "tool: 39.9"),
        conversation("user: the price?"),
    ) == ["large", "39.90", "look"]


def test_earlier_turns_and_what_hooks_say_do_not_disturb_the_count():
    model = ScriptedModel([PRICE, SIZE])
    earlier = ["user: the size?", "assistant: large", "user: the price?", "assistant: look"]
    assert said(model, conversation(*earlier, "tool: 39.9", "user: Say it more briefly.")) == ["39.90"]


def test_a_line_without_match_takes_the_rest_and_counts_the_whole_conversation():
    model = ScriptedModel([SIZE, Conversation(replies=[ScriptedReply(content="a"), ScriptedReply(content="b")])])
    assert said(model, conversation("user: hi"), conversation("user: hi", "assistant: a", "user: again")) == ["a", "b"]


def test_errors_of_a_conversation_come_first_and_then_again_for_the_next_request():
    failing = ScriptedReply(error=ScriptedError(message="500", times=2))
    model = ScriptedModel([Conversation(match="price", replies=[failing, ScriptedReply(content="39.90"), failing])])
    first, second = conversation("user: price"), conversation("user: price", "assistant: 39.90")
    assert said(model, first, first, first, first) == ["500", "500", "39.90", "500"]
    assert said(model, second, second)[:2] == ["500", "500"]
    assert said(model, second)[0].startswith("the script has run out")


def test_running_out_says_where():
    model = ScriptedModel([PRICE])
    after = conversation("user: the price?", "assistant: look", "assistant: 39.90")
    assert said(model, after, conversation("user: and the size?")) == [
        "the script has run out: line 1 (match 'price') has 2 replies and this is call 3 for the user message 'the price?'",
        "no line of the script matches the user message 'and the size?'",
    ]


def test_concurrent_requests_get_their_own_replies_in_any_order():
    lines = [
        Conversation(match=f"<{n}>", replies=[ScriptedReply(content=f"{n}.{step}") for step in range(3)])
        for n in range(20)
    ]
    asked = [(n, step) for n in range(20) for step in range(3)]
    random.Random(7).shuffle(asked)
    requests = [conversation(f"user: <{n}>", *["assistant: x"] * step) for n, step in asked]

    async def main():
        model = ScriptedModel(lines)
        return [reply.content for reply in await asyncio.gather(*map(model.complete, requests))]

    assert asyncio.run(main()) == [f"{n}.{step}" for n, step in asked]


def test_a_function_of_the_request():
    model = ScriptedModel(lambda asked: ScriptedReply(content=asked.messages[-1]["content"].upper()))
    assert said(model, request("abc")) == ["ABC"]


def test_a_delay_passes_on_the_given_clock():
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    model = ScriptedModel(
        [ScriptedReply(content="a", delay_s=2), ScriptedReply(content="b", delay_s=1e9)],
        sleep=sleep,
        monotonic=lambda: 100.0,
    )
    asked = request()
    asked.deadline = 110.0
    assert said(model, asked, asked) == ["a", "the script gave no answer within 10.0 s"]
    assert slept == [2, 10]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ['{"content": "a"}', '{"contents": "b"}'],
            ":2: not a line of a script: Object contains unknown field `contents`",
        ),
        (['{"content": "a"'], ":1: not JSON: "),
        (["[]"], ":1: not a line of a script: Expected `object`, got `array`"),
        ([{"tool_calls": [{"name": "a", "arguments": 3}]}], "got `int` - at `$.tool_calls[0].arguments`"),
        ([{"content": "a", "error": {"message": "b"}}], ":1: not a line of a script: an error stands alone"),
        ([{"content": "a"}, {"replies": []}], ":2: replies in order and conversations are mixed"),
        ([{"match": "a"}], ":1: not a line of a script: Object contains unknown field `match`"),
    ],
)
def test_wrong_scripts(project, lines, message):
    path = script_file(project, *lines)
    with pytest.raises(RecordError) as caught:
        read_script(path)
    assert caught.value.message.startswith(str(path))
    assert message in caught.value.message
