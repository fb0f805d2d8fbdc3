"""Rollouts over SGLang's native API: what is sent, what is read, and what is refused."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tokenizers import Tokenizer

from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.sglang import SGLangModel
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import ModelError, UsageError
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling
from tests.decode.conftest import TOOLS
from tests.decode_sglang.fake_sglang import EXACT, FakeSGLang, said

T = TypeVar("T")
SAMPLED = Sampling(temperature=0.7, top_p=0.9, max_tokens=40, seed=5)


def ask(text: str = "hi", *, seconds: float = 5.0, **given: Any) -> ModelRequest:
    fields = {"messages": [{"role": "user", "content": text}], "tools": [], "sampling": SAMPLED} | given
    return ModelRequest(deadline=time.monotonic() + seconds, **fields)


def with_model(
    tokenizer: Tokenizer, server: FakeSGLang, run: Callable[[SGLangModel], Awaitable[T]], **options: Any
) -> T:
    async def main() -> T:
        async with server:
            model = SGLangModel(server.url, name="policy", tokenizer=tokenizer, **options)
            try:
                return await run(model)
            finally:
                await model.aclose()

    return asyncio.run(main())


def reply_of(tokenizer: Tokenizer, *says: Any, asked: ModelRequest | None = None, **options: Any) -> ModelReply:
    return with_model(tokenizer, FakeSGLang(tokenizer, *says), lambda m: m.complete(asked or ask()), **options)


def failure_of(tokenizer: Tokenizer, *says: Any, asked: ModelRequest | None = None, **server: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        with_model(tokenizer, FakeSGLang(tokenizer, *says, **server), lambda m: m.complete(asked or ask()))
    return caught.value


def test_ids_are_sent_and_ids_with_log_probabilities_come_back(tokenizer: Tokenizer) -> None:
    server = FakeSGLang(tokenizer, "It is 12.")
    reply = with_model(tokenizer, server, lambda m: m.complete(ask(sampling=SAMPLED)))
    template = ChatTemplate()
    encoder = PromptEncoder(template, TokenCodec(tokenizer, end=template.end))
    assert server.generated == [
        {
            "input_ids": encoder.prompt(ask()),
            "sampling_params": {
                "temperature": 0.7,
                "top_p": 0.9,
                "max_new_tokens": 40,
                "stop_token_ids": [encoder.end_id],
                "sampling_seed": 5,
            },
            "return_logprob": True,
            "logprob_start_len": -1,
        }
    ]
    assert reply.content == "It is 12."
    assert reply.prompt_ids == encoder.prompt(ask())
    assert reply.completion_ids == encoder.reply("It is 12.")
    assert reply.logprobs == [-0.5 - 0.25 * at for at in range(len(reply.completion_ids))]
    assert reply.usage.completion_tokens == len(reply.completion_ids)
    assert reply.finish_reason == "stop"


def test_what_a_request_leaves_open_is_greedy(tokenizer: Tokenizer) -> None:
    server = FakeSGLang(tokenizer, "a")
    with_model(tokenizer, server, lambda m: m.complete(ask(sampling=Sampling())), ends=[0])
    assert server.generated[0]["sampling_params"] == {
        "temperature": 0.0,
        "top_p": 1.0,
        "max_new_tokens": 512,
        "stop_token_ids": [0, 2],
    }


def test_calls_and_reasoning_are_read_as_a_local_model_s(tokenizer: Tokenizer) -> None:
    text = '<think>\nlook\n</think>\n\n<tool_call>\n{"name": "get_product", "arguments": {"link": 3}}\n</tool_call>'
    reply = reply_of(tokenizer, text, asked=ask(tools=TOOLS))
    assert (reply.content, reply.reasoning, reply.finish_reason) == (None, "look", "tool_calls")
    (call,) = reply.tool_calls
    assert (call.id, call.name, call.arguments) == ("call_1_0", "get_product", '{"link": 3}')


def test_the_next_prompt_begins_with_what_was_read_and_said(tokenizer: Tokenizer) -> None:
    server = FakeSGLang(tokenizer, "one", "two")

    async def talk(model: SGLangModel) -> list[ModelReply]:
        first = await model.complete(ask())
        seen = (first.prompt_ids or []) + (first.completion_ids or [])
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "other"}]
        messages.append({"role": "user", "content": "and?"})
        return [first, await model.complete(ask(messages=messages, prefix_ids=seen, prefix_messages=2))]

    first, second = with_model(tokenizer, server, talk)
    seen = (first.prompt_ids or []) + (first.completion_ids or [])
    assert server.generated[1]["input_ids"] == second.prompt_ids
    assert (second.prompt_ids or [])[: len(seen)] == seen


def test_a_stop_string_and_a_limit_end_the_text(tokenizer: Tokenizer) -> None:
    server = FakeSGLang(tokenizer, "one STOP two")
    sampling = Sampling(max_tokens=40, stop=["STOP"])
    reply = with_model(tokenizer, server, lambda m: m.complete(ask(sampling=sampling)))
    assert server.generated[0]["sampling_params"]["stop"] == ["STOP"]
    assert reply.content == "one"
    cut = tokenizer.encode("价格", add_special_tokens=False).ids[:-1]
    length = {"type": "length", "length": len(cut)}
    reply = reply_of(tokenizer, lambda body: (200, said(cut, body["input_ids"], finish=length)))
    assert (reply.content, reply.finish_reason, reply.completion_ids) == ("价", "length", cut)


def test_one_connection_serves_one_after_another(tokenizer: Tokenizer) -> None:
    server = FakeSGLang(tokenizer, *"abc")

    async def three(model: SGLangModel) -> None:
        for _ in range(3):
            await model.complete(ask())

    with_model(tokenizer, server, three)
    assert len(server.connections) == 1
    assert [path for path, _ in server.seen] == ["/server_info", *["/generate"] * 3]


def test_counters_of_speculation_are_summed(tokenizer: Tokenizer) -> None:
    def speculated(body: dict[str, Any]) -> tuple[int, Any]:
        counts = {"spec_verify_ct": 2, "spec_num_correct_drafts": 3, "spec_num_proposed_drafts": 6}
        return 200, said([50, 51, 52, 53, 2], body["input_ids"], spec_accept_rate=0.5, **counts)

    async def two(model: SGLangModel) -> dict[str, int]:
        await model.complete(ask())
        await model.complete(ask())
        return dict(model.counters)

    counters = with_model(tokenizer, FakeSGLang(tokenizer, speculated, speculated), two)
    assert counters == {"spec_verify_ct": 4, "spec_num_correct_drafts": 6, "spec_num_proposed_drafts": 12}


RELAXED = EXACT | {"speculative_accept_threshold_single": 0.5, "speculative_accept_threshold_acc": 0.7}


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (RELAXED, "speculative_accept_threshold_single; got 0.5; allowed 1.0"),
        (EXACT | {"speculative_accept_threshold_acc": 0.7}, "speculative_accept_threshold_acc; got 0.7; allowed 1.0"),
        (EXACT | {"internal_states": [{}, {"speculative_accept_threshold_acc": 0.7}]}, "acc; got 0.7; allowed 1.0"),
        ({"speculative_algorithm": "EAGLE"}, "speculative_accept_threshold_single; got null; allowed 1.0"),
    ],
)
def test_a_server_that_does_not_speculate_exactly_is_refused(
    tokenizer: Tokenizer, told: dict[str, Any], shown: str
) -> None:
    server = FakeSGLang(tokenizer, "a", told=told)
    with pytest.raises(ModelError) as caught:
        with_model(tokenizer, server, lambda m: m.complete(ask()))
    assert shown in caught.value.message
    assert not caught.value.retryable
    assert not server.generated


def test_thresholds_are_nothing_to_a_server_that_does_not_speculate(tokenizer: Tokenizer) -> None:
    told = RELAXED | {"speculative_algorithm": None}
    assert with_model(tokenizer, FakeSGLang(tokenizer, "a", told=told), lambda m: m.complete(ask())).content == "a"


def test_weights_are_updated_from_disk(tokenizer: Tokenizer, tmp_path: Path) -> None:
    server = FakeSGLang(tokenizer, "a")

    async def update(model: SGLangModel) -> None:
        await model.update_weights(tmp_path)
        await model.complete(ask())

    with_model(tokenizer, server, update)
    assert [path for path, _ in server.seen] == ["/update_weights_from_disk", "/server_info", "/generate"]
    assert server.seen[0][1] == {"model_path": str(tmp_path)}


@pytest.mark.parametrize("status", [200, 400])
def test_weights_that_a_server_does_not_take_are_an_error(tokenizer: Tokenizer, status: int) -> None:
    answer = {"success": False, "message": "Failed to get weights iterator: no such folder", "num_paused_requests": 0}
    server = FakeSGLang(tokenizer, updated=(status, answer))
    with pytest.raises(ModelError, match="did not take the weights of /new: Failed to get weights iterator") as caught:
        with_model(tokenizer, server, lambda m: m.update_weights("/new"))
    assert not caught.value.retryable


ABORT = {"type": "abort", "message": "The input is too long", "status_code": 400, "err_type": "BadRequestError"}


@pytest.mark.parametrize(
    ("answer", "shown", "retryable"),
    [
        (lambda _: (503, {"error": {"message": "starting"}}), "answered 503: starting", True),
        (lambda _: (429, "busy"), "answered 429: busy", True),
        (lambda _: (400, {"error": {"message": "too long", "code": 400}}), "answered 400: too long", False),
        (lambda _: (404, "no such page"), "answered 404", False),
        (lambda _: (200, "{"), "broken JSON", True),
        (lambda _: (200, []), "got list, not an object", False),
        (lambda _: (200, {"text": "a"}), "meta_info: Expected `object`, got `null`", False),
        (lambda b: (200, said([2], b["input_ids"], output_token_logprobs=None)), "output_token_logprobs", False),
        (lambda b: (200, said([2], b["input_ids"], completion_tokens=2)), "2 tokens and 1 log-probabilities", False),
        (lambda b: (200, said([2], [1])), "it read 1 tokens", False),
        (lambda b: (200, said([2], b["input_ids"], finish=ABORT)), "gave up: The input is too long", False),
        (lambda b: (200, said([2], b["input_ids"], finish={"type": "abort"})), "gave up: it does not say why", True),
        (lambda b: (200, said([2], b["input_ids"], finish={"type": "paused"})), "got 'paused'", False),
    ],
)
def test_answers_that_are_none(tokenizer: Tokenizer, answer: Any, shown: str, retryable: bool) -> None:
    error = failure_of(tokenizer, answer)
    assert shown in error.message
    assert error.retryable is retryable


def test_the_deadline_is_kept(tokenizer: Tokenizer) -> None:
    async def silent() -> ModelError:
        gone = asyncio.Event()

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()  # says nothing until the other side is gone
            writer.close()
            gone.set()

        server = await asyncio.start_server(hold, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = SGLangModel(f"http://127.0.0.1:{port}", name="p", tokenizer=tokenizer)
        with pytest.raises(ModelError) as caught:
            await model.complete(ask(seconds=0.1))
        await model.aclose()
        server.close()
        await gone.wait()
        return caught.value

    error = asyncio.run(silent())
    assert "did not answer /server_info within 0.1 s" in error.message
    assert not error.retryable
    assert "deadline had passed" in failure_of(tokenizer, "a", asked=ask(seconds=-1.0)).message


def test_a_server_that_is_not_there_may_come_back(tokenizer: Tokenizer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    async def run() -> None:
        model = SGLangModel(url, name="p", tokenizer=tokenizer)
        with pytest.raises(ModelError, match="cannot connect") as caught:
            await model.complete(ask())
        assert caught.value.retryable
        await model.aclose()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "shown"), [("http://127.0.0.1:30000/v1", "its root, without /v1"), ("30000", "http://")]
)
def test_a_url_that_is_not_the_root_is_refused(tokenizer: Tokenizer, url: str, shown: str) -> None:
    with pytest.raises(UsageError, match=shown):
        SGLangModel(url, name="p", tokenizer=tokenizer)


def test_a_key_is_sent_and_never_shown(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", "very-secret-thing")
    with pytest.raises(ModelError) as caught:
        with_model(
            tokenizer,
            FakeSGLang(tokenizer, lambda _: (401, {"error": "very-secret-thing is wrong"})),
            lambda m: m.complete(ask()),
            key_env="SERVER_KEY",
        )
    assert "*** is wrong" in caught.value.message
