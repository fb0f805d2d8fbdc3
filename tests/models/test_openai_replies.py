"""What is made of good answers, whole and streamed."""

from __future__ import annotations

import asyncio
import itertools

import orjson
import pytest
from canned_server import Server, ask, completion, delta, http, request, sse
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.records.trajectory import Usage
from harnessctl.runtime.models.encode import BodyEncoder
from harnessctl.runtime.models.endpoint import Endpoint
from harnessctl.runtime.models.openai import OpenAIModel
from harnessctl.runtime.models.sse import EventSplitter
from harnessctl.runtime.models.wire import ReplyDraft, decode_completion
from harnessctl.runtime.protocols import ModelReply, ModelToolCall, Sampling

STREAM = sse(
    delta(role="assistant", content=""),
    delta(reasoning_content="Look "),
    delta(reasoning_content="it up."),
    delta(content="Just a "),
    delta(content="moment 🙂"),
    delta(tool_calls=[{"index": 0, "id": "a", "type": "function", "function": {"name": "get", "arguments": ""}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": '{"link'}}]),
    delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "find", "arguments": "{}"}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": '_id": 3}'}}]),
    delta("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 30}},
    "[DONE]",
)
WHOLE = {
    "content": "Just a moment 🙂",
    "reasoning_content": "Look it up.",
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "get", "arguments": '{"link_id": 3}'}},
        {"id": "b", "type": "function", "function": {"name": "find", "arguments": "{}"}},
    ],
}
REPLY = ModelReply(
    content="Just a moment 🙂",
    reasoning="Look it up.",
    tool_calls=[ModelToolCall("a", "get", '{"link_id": 3}'), ModelToolCall("b", "find", "{}")],
    finish_reason="tool_calls",
    usage=Usage(70, 30),
)


def streamed(*events, **settings):
    return ask(http(sse(*events), kind="text/event-stream; charset=utf-8"), **settings)


def test_a_whole_answer():
    usage = {"prompt_tokens": 70, "completion_tokens": 30}
    assert ask(completion(WHOLE, usage=usage), stream=False) == REPLY


def test_a_stream_gives_the_same_reply_and_the_time_to_its_first_token():
    reply = ask(http(STREAM, kind="text/event-stream"))
    assert reply.ttft_s is not None
    reply.ttft_s = None
    assert reply == REPLY


@settings(max_examples=60)
@given(st.lists(st.integers(0, len(STREAM)), max_size=20), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_any_split_of_a_stream_gives_the_same_reply(places, newline):
    stream = STREAM.replace(b"\n", newline)
    edges = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    splitter, draft = EventSplitter(), ReplyDraft()
    for start, end in itertools.pairwise(edges):
        for data in splitter.feed(stream[start:end]):
            if data != b"[DONE]":
                draft.add(decode_completion(data))
    assert draft.finish(request(), ttft_s=None) == REPLY


def test_a_stream_that_arrives_in_pieces_is_timed_at_its_first_token():
    now = iter([10.0, 12.5])
    sent = asyncio.Event()

    async def answer(writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: ping\n\n")
        writer.write(sse(delta(role="assistant")))
        await writer.drain()
        await sent.wait()
        writer.write(sse(delta(content="hi"), delta("stop"), "[DONE]"))
        await writer.drain()

    async def main():
        async with Server(answer) as server:
            model = OpenAIModel(Endpoint(model="m", base_url=server.url), monotonic=lambda: next(now))
            asking = asyncio.ensure_future(model.complete(request(seconds=60)))
            while not server.seen:
                await asyncio.sleep(0)
            sent.set()
            reply = await asking
            await model.aclose()
            return reply

    assert asyncio.run(main()).ttft_s == 2.5


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart_under_either_name(field):
    reply = ask(completion({"content": "8", field: "3 + 5"}))
    assert (reply.content, reply.reasoning) == ("8", "3 + 5")
    reply = streamed(delta(**{field: "3 + "}), delta(**{field: "5"}), delta(content="8"), delta("stop"))
    assert (reply.content, reply.reasoning) == ("8", "3 + 5")


def test_missing_and_repeated_ids_are_made_up_and_are_equal_each_time():
    calls = [
        {"function": {"name": n, "arguments": "{}"}, "id": i}
        for n, i in (("a", None), ("b", ""), ("c", "x"), ("d", "x"))
    ]
    messages = [{"role": "user", "content": "hi"}] * 3
    ids = [
        [call.id for call in ask(completion({"tool_calls": calls}), asked=request(messages=messages)).tool_calls]
        for _ in "12"
    ]
    assert ids == [["call_3_0", "call_3_1", "x", "call_3_3"]] * 2


def test_deltas_without_an_index():
    reply = streamed(
        delta(tool_calls=[{"id": "a", "function": {"name": "get", "arguments": '{"x"'}}]),
        delta(tool_calls=[{"function": {"arguments": ": 1}"}}]),
        delta(tool_calls=[{"id": "b", "function": {"name": "get", "arguments": "{}"}}]),
        delta("tool_calls"),
    )
    assert reply.tool_calls == [ModelToolCall("a", "get", '{"x": 1}'), ModelToolCall("b", "get", "{}")]


def test_parallel_calls_that_all_have_index_0():
    reply = streamed(
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "get", "arguments": '{"x": 1}'}}]),
        delta(tool_calls=[{"index": 0, "id": "b", "function": {"name": "get", "arguments": '{"x"'}}]),
        delta(tool_calls=[{"index": 0, "id": "b", "function": {"name": "get", "arguments": ": 2}"}}]),
        delta("tool_calls"),
    )
    assert reply.tool_calls == [ModelToolCall("a", "get", '{"x": 1}'), ModelToolCall("b", "get", '{"x": 2}')]


def test_a_name_in_pieces_and_a_name_repeated():
    reply = streamed(
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "get_"}}]),
        delta(tool_calls=[{"index": 0, "function": {"name": "item", "arguments": "{"}}]),
        delta(tool_calls=[{"index": 0, "function": {"name": "get_item", "arguments": "}"}}]),
        delta("tool_calls"),
    )
    assert reply.tool_calls == [ModelToolCall("a", "get_item", "{}")]


def test_arguments_sent_as_an_object_become_text():
    reply = ask(
        http('{"choices": [{"message": {"tool_calls": [{"function": {"arguments": {"x": 1e999, "y": "é"}}}]}}]}')
    )
    assert reply.tool_calls == [ModelToolCall("call_1_0", "", '{"x": 1e999, "y": "é"}')]


def test_broken_arguments_are_passed_on_as_they_are():
    call = {"id": "a", "function": {"name": "get", "arguments": '{"x": '}}
    assert ask(completion({"tool_calls": [call]})).tool_calls[0].arguments == '{"x": '


@pytest.mark.parametrize("message", [{}, {"content": ""}, {"content": None, "tool_calls": None}, {"content": []}])
def test_an_empty_message_is_a_reply_without_text(message):
    reply = ask(completion(message))
    assert (reply.content, reply.tool_calls, reply.finish_reason) == (None, [], "stop")


def test_content_in_parts_and_a_refusal():
    assert (
        ask(completion({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]})).content == "ab"
    )
    assert ask(completion({"content": None, "refusal": "I cannot."})).content == "I cannot."


def test_other_choices_are_passed_over():
    reply = streamed(delta(content="a"), {"choices": [{"index": 1, "delta": {"content": "b"}}]}, delta("stop"))
    assert reply.content == "a"


def test_token_ids_and_logprobs_where_the_endpoint_gives_them():
    first = {**delta(content="a"), "prompt_token_ids": [1, 2]}
    first["choices"][0] |= {"token_ids": [3], "logprobs": {"content": [{"token": "a", "logprob": -0.5}]}}
    last = delta("stop")
    last["choices"][0] |= {"token_ids": [4], "logprobs": {"content": [{"token": "", "logprob": -0.25}]}}
    reply = streamed(first, last, "[DONE]")
    assert (reply.prompt_ids, reply.completion_ids, reply.logprobs) == ([1, 2], [3, 4], [-0.5, -0.25])


def test_an_endpoint_that_does_not_stream_though_asked_to():
    reply = ask(completion({"content": "hi"}), stream=True)
    assert (reply.content, reply.ttft_s) == ("hi", None)


def test_an_endpoint_that_streams_though_not_asked_to():
    assert streamed(delta(content="hi"), delta("stop"), "[DONE]", stream=False).content == "hi"


@pytest.mark.parametrize("end", [b"data: [DONE]", b"data: [DONE]\n", b"", b'data: {"choi'])
def test_streams_that_end_without_ceremony(end):
    body = sse(delta(content="hi"), delta("stop")) + end
    assert ask(http(body, kind="text/event-stream")).content == "hi"


def test_a_stream_that_is_cut_after_its_finish_reason_is_whole():
    body = sse(delta(content="hi"), delta("stop"))
    cut = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: {len(body) + 9}\r\n\r\n"
    assert ask(cut.encode() + body).content == "hi"


def test_a_server_that_says_no_more_after_its_last_event_does_not_hold_the_reply(monkeypatch):
    monkeypatch.setattr("harnessctl.runtime.models.openai._LINGER_S", 0.01)

    async def answer(writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        writer.write(sse(delta(content="hi"), delta("stop"), "[DONE]"))
        await writer.drain()
        await asyncio.Event().wait()

    assert ask(answer, asked=request(seconds=30)).content == "hi"


def test_what_is_sent():
    async def main():
        async with Server(http(STREAM, kind="text/event-stream"), http(STREAM, kind="text/event-stream")) as server:
            endpoint = Endpoint(model="m", base_url=server.url + "/?v=1", body={"logprobs": True})
            model = OpenAIModel(endpoint)
            await model.complete(request(sampling=Sampling(seed=7, stop=["\n"], temperature=0.5)))
            await model.complete(request())
            await model.aclose()
            return server

    server = asyncio.run(main())
    head, body = server.seen[0]
    assert head.startswith("POST /v1/chat/completions?v=1 HTTP/1.1\r\n")
    assert "authorization" not in head.lower()
    assert orjson.loads(body) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.5,
        "seed": 7,
        "stop": ["\n"],
        "stream": True,
        "stream_options": {"include_usage": True},
        "logprobs": True,
    }
    assert server.connections == 1, "a stream read to its end leaves the connection for the next call"


def test_a_body_above_a_mebibyte_is_sent_whole():
    text = "长" * 500_000

    async def main():
        async with Server(completion({"content": "hi"})) as server:
            model = OpenAIModel(Endpoint(model="m", base_url=server.url))
            await model.complete(request(text))
            await model.aclose()
            return server.seen[0][1]

    assert orjson.loads(asyncio.run(main()))["messages"][0]["content"] == text


def test_one_model_serves_several_loops_and_closes_in_each():
    answers = [completion({"content": "hi"})] * 2

    async def once(model):
        async with Server(*answers) as server:
            model._target = OpenAIModel(Endpoint(model="m", base_url=server.url))._target
            replies = await asyncio.gather(model.complete(request()), model.complete(request()))
            await model.aclose()
            await model.aclose()
            return [reply.content for reply in replies]

    model = OpenAIModel(Endpoint(model="m"))
    assert asyncio.run(once(model)) == asyncio.run(once(model)) == ["hi", "hi"]


def test_a_loop_that_ended_without_closing_is_forgotten():
    last = completion({"content": "hi"}).replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
    model = OpenAIModel(Endpoint(model="m"))

    async def once(*, close):
        async with Server(last) as server:
            model._target = OpenAIModel(Endpoint(model="m", base_url=server.url))._target
            await model.complete(request())
            if close:
                await model.aclose()

    asyncio.run(once(close=False))
    asyncio.run(once(close=True))
    assert not model._sessions


def test_open_connections_are_bounded():
    async def main():
        async with Server(*[completion({"content": "hi"})] * 12) as server:
            model = OpenAIModel(Endpoint(model="m", base_url=server.url, connections=3))
            await asyncio.gather(*(model.complete(request()) for _ in range(12)))
            await model.aclose()
            return server.connections

    assert asyncio.run(main()) <= 3


def test_the_encoder_shares_what_the_endpoint_always_sends():
    model = OpenAIModel(Endpoint(model="m", stream=False, body={"seed": None}))
    assert isinstance(model._encoder, BodyEncoder)
    assert orjson.loads(model._encoder.encode(request(sampling=Sampling(seed=3)))) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
    }
