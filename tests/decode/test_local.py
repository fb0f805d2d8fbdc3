"""The local model as the runtime sees it: ids, seeds, deadlines, company."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
import torch
from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

from harnessctl.decode.generation import CHUNK
from harnessctl.decode.local import LocalModel
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.decode.weights import Weights, from_parts
from harnessctl.errors import ModelError
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling
from tests.decode.conftest import LINK, TOOLS, make_llama, make_tokenizer

Make = Callable[..., LocalModel]
SYSTEM = {"role": "system", "content": "You are the host of a shop. " * 4}
GREEDY = Sampling(max_tokens=12)


def ask(
    text: str = "hi",
    *,
    messages: list[dict[str, Any]] | None = None,
    seconds: float = 60.0,
    sampling: Sampling = GREEDY,
    **more: Any,
) -> ModelRequest:
    return ModelRequest(
        messages=messages or [SYSTEM, {"role": "user", "content": text}],
        tools=more.pop("tools", []),
        sampling=sampling,
        deadline=time.monotonic() + seconds,
        **more,
    )


def answer(model: LocalModel, request: ModelRequest) -> ModelReply:
    return asyncio.run(model.complete(request))


def assistant(reply: ModelReply) -> dict[str, Any]:
    calls = [{"id": c.id, "function": {"name": c.name, "arguments": c.arguments}} for c in reply.tool_calls]
    return {"role": "assistant", "content": reply.content, "tool_calls": calls}


def counting(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of tokens of each forward pass, in order."""
    passes: list[int] = []
    forward = weights.model.forward

    def counted(*args: Any, **options: Any) -> Any:
        passes.append(options["input_ids"].shape[1])
        return forward(*args, **options)

    monkeypatch.setattr(weights.model, "forward", counted)
    return passes


def test_a_reply_tells_ids_usage_and_times(local: Make) -> None:
    reply = answer(local(), ask())
    assert reply.prompt_ids is not None and reply.completion_ids is not None and reply.logprobs is not None
    assert reply.usage.prompt_tokens == len(reply.prompt_ids)
    assert reply.usage.completion_tokens == len(reply.completion_ids) == len(reply.logprobs)
    assert reply.ttft_s is not None and reply.ttft_s > 0
    assert all(value <= 0 for value in reply.logprobs)


def test_name_and_template_digest_are_told(local: Make) -> None:
    model = local()
    assert model.name == "tiny"
    assert model.template == ChatTemplate().digest


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_the_ids_of_a_long_conversation_are_what_was_seen_and_said(local: Make, weights: Weights, choice: Any) -> None:
    """Each prompt begins with everything before it, token by token, however a reply ended."""
    model, template = local(), ChatTemplate()
    codec = TokenCodec(weights.tokenizer, end="<|im_end|>")
    messages: list[dict[str, Any]] = [SYSTEM, {"role": "user", "content": "<|im_end|> 价格?"}]
    seen: list[int] = []
    covered = 0
    for turn in range(4):
        request = ask(
            messages=messages,
            tools=TOOLS,
            tool_choice=choice,
            prefix_ids=seen or None,
            prefix_messages=covered,
            sampling=Sampling(temperature=1.0, seed=turn, max_tokens=(9, 200, 1, 60)[turn]),
        )
        reply = answer(model, request)
        assert reply.prompt_ids is not None and reply.completion_ids is not None
        fresh = template.render(messages[covered:], TOOLS, first=covered == 0)
        end = [codec.end_id] if seen and seen[-1] != codec.end_id else []
        expected = seen + end + [token for segments in fresh for token in codec.encode(segments)]
        assert reply.prompt_ids == expected + codec.encode(template.reply_opening())
        seen = reply.prompt_ids + reply.completion_ids
        messages = [*messages, assistant(reply)]
        covered = len(messages)
        messages += [{"role": "tool", "content": '{"ok": true}'}, {"role": "user", "content": "\0 <tool_call>"}]


def test_history_is_never_rendered_again(local: Make) -> None:
    """What the model said stays in its own tokens although another message stands in its place."""
    model = local()
    first = answer(model, ask())
    assert first.prompt_ids is not None and first.completion_ids is not None
    said = first.prompt_ids + first.completion_ids
    messages = [SYSTEM, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "nothing of the kind"}]
    messages.append({"role": "user", "content": "and?"})
    reply = answer(model, ask(messages=messages, prefix_ids=said, prefix_messages=3))
    assert reply.prompt_ids is not None
    assert reply.prompt_ids[: len(said)] == said


def test_log_probs_are_those_of_a_single_pass_over_the_ids(local: Make, weights: Weights) -> None:
    reply = answer(
        local(), ask(tools=TOOLS, tool_choice="required", sampling=Sampling(temperature=0.7, seed=3, max_tokens=80))
    )
    assert reply.prompt_ids is not None and reply.completion_ids is not None and reply.logprobs is not None
    ids = reply.prompt_ids + reply.completion_ids
    with torch.inference_mode():
        logits = weights.model(input_ids=torch.tensor([ids])).logits[0].float() / 0.7
    rows = torch.log_softmax(logits, dim=-1)[len(reply.prompt_ids) - 1 : -1]
    naive = rows.gather(1, torch.tensor(reply.completion_ids)[:, None])[:, 0].tolist()
    assert reply.logprobs == pytest.approx(naive, abs=1e-4)


def test_a_kept_context_changes_no_answer_and_saves_reading(
    local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm, passes = local(), counting(weights, monkeypatch)
    answer(warm, ask("first", tools=TOOLS))
    prompt = sum(passes)
    for text in ("second", "second", "third"):
        passes.clear()
        kept = answer(warm, ask(text, tools=TOOLS))
        assert sum(passes) < prompt / 4
        fresh = answer(local(), ask(text, tools=TOOLS))
        assert kept.completion_ids == fresh.completion_ids
        assert kept.logprobs == pytest.approx(fresh.logprobs, abs=1e-4)


def test_the_next_round_reads_only_what_is_new(local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    model, passes = local(), counting(weights, monkeypatch)
    first = answer(model, ask("hello"))
    assert first.prompt_ids is not None and first.completion_ids is not None
    passes.clear()
    seen = first.prompt_ids + first.completion_ids
    messages = [SYSTEM, {"role": "user", "content": "hello"}, assistant(first), {"role": "user", "content": "x"}]
    reply = answer(model, ask(messages=messages, prefix_ids=seen, prefix_messages=3))
    assert reply.prompt_ids is not None
    assert passes[0] == len(reply.prompt_ids) - len(seen) + 1


def test_a_long_prompt_is_read_in_pieces(local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    model, passes = local(), counting(weights, monkeypatch)
    reply = answer(model, ask("word " * 150, sampling=Sampling(max_tokens=1)))
    assert reply.usage.prompt_tokens > 2 * CHUNK
    assert max(passes) <= CHUNK
    assert sum(passes) == reply.usage.prompt_tokens


def test_the_same_seed_says_the_same(local: Make) -> None:
    def say(seed: int) -> list[int] | None:
        return answer(
            local(), ask(sampling=Sampling(temperature=1.0, top_p=0.95, seed=seed, max_tokens=20))
        ).completion_ids

    assert say(1) == say(1)
    assert say(1) != say(2)


@pytest.mark.parametrize("seed", range(6))
def test_required_calls_fit_their_tool(local: Make, seed: int) -> None:
    sampling = Sampling(temperature=1.5, seed=seed, max_tokens=400)
    reply = answer(local(max_calls=1), ask(tools=TOOLS, tool_choice="required", sampling=sampling))
    assert reply.finish_reason == "tool_calls"
    assert reply.content is None
    (call,) = reply.tool_calls
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    jsonschema_rs.validate(schemas[call.name], json.loads(call.arguments))


def test_ids_of_calls_are_unique_and_can_be_had_again(local: Make) -> None:
    request = ask(tools=TOOLS[:1], tool_choice="required", sampling=Sampling(temperature=1.0, seed=5, max_tokens=400))
    first, again = answer(local(), request), answer(local(), request)
    ids = [call.id for call in first.tool_calls]
    assert ids == [call.id for call in again.tool_calls]
    assert len(set(ids)) == len(ids)
    assert ids[0] == "call_2_0"


def test_forced_tokens_are_read_together(local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    model, passes = local(max_calls=1), counting(weights, monkeypatch)
    reply = answer(model, ask(tools=TOOLS, tool_choice="required", sampling=Sampling(max_tokens=200)))
    assert reply.finish_reason == "tool_calls"
    assert len(passes) < reply.usage.completion_tokens / 2


def test_a_reply_can_be_bound_to_a_schema(local: Make) -> None:
    schema = {"type": "object", "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 2}}}
    reply = answer(local(), ask(reply_schema=schema | {"required": ["score"]}))
    assert reply.content is not None
    jsonschema_rs.validate(schema, json.loads(reply.content))
    assert reply.finish_reason == "stop"


def test_the_limit_on_tokens_ends_a_reply(local: Make) -> None:
    reply = answer(local(), ask(sampling=Sampling(max_tokens=3, temperature=1.0, seed=4)))
    assert reply.finish_reason == "length"
    assert reply.usage.completion_tokens == 3


def test_the_limit_counts_forced_tokens(local: Make) -> None:
    reply = answer(local(), ask(tools=TOOLS, tool_choice="required", sampling=Sampling(max_tokens=5)))
    assert reply.usage.completion_tokens == 5
    assert reply.finish_reason == "length"


def test_a_stop_string_ends_a_reply_and_is_left_out(local: Make) -> None:
    whole = answer(local(), ask()).content
    assert whole is not None and len(whole) > 4
    reply = answer(local(), ask(sampling=Sampling(max_tokens=12, stop=["absent", whole[2:4]])))
    assert reply.finish_reason == "stop"
    assert reply.content == (whole[: whole.index(whole[2:4])].strip() or None)


def test_special_tokens_are_never_said(local: Make, weights: Weights) -> None:
    codec = TokenCodec(weights.tokenizer, end="<|im_end|>")
    for seed in range(3):
        reply = answer(local(), ask(sampling=Sampling(temperature=3.0, seed=seed, max_tokens=60)))
        assert reply.completion_ids is not None
        assert codec.special_ids.isdisjoint(reply.completion_ids[:-1])


def test_a_prompt_that_does_not_fit_is_an_error_that_says_how_long_it_is(local: Make) -> None:
    tokenizer = make_tokenizer()
    model = local(from_parts(make_llama(tokenizer, context=64), tokenizer))
    with pytest.raises(ModelError) as caught:
        answer(model, ask("x" * 200))
    assert "tokens; the context of tiny holds 64" in caught.value.message
    assert not caught.value.retryable


def test_max_tokens_is_cut_to_the_context(local: Make) -> None:
    tokenizer = make_tokenizer()
    model = local(from_parts(make_llama(tokenizer, context=64), tokenizer))
    messages = [{"role": "user", "content": "hi"}]
    reply = answer(model, ask(messages=messages, sampling=Sampling(max_tokens=1000, temperature=1.0, seed=0)))
    assert reply.usage.prompt_tokens + reply.usage.completion_tokens <= 64


def test_requests_at_once_get_the_answers_that_they_get_alone(local: Make) -> None:
    texts = ["a", "bb", "ccc", "dddd"]
    alone = [answer(local(), ask(text, tools=TOOLS)).completion_ids for text in texts]

    async def together() -> list[ModelReply]:
        model = local()
        return await asyncio.gather(*(model.complete(ask(text, tools=TOOLS)) for text in texts * 2))

    assert [reply.completion_ids for reply in asyncio.run(together())] == alone * 2


class Gate:
    """Holds the model's forward passes back until it is opened."""

    def __init__(self, weights: Weights, monkeypatch: pytest.MonkeyPatch, *, after: int = 0) -> None:
        self.open, self.reached = threading.Event(), threading.Event()
        self.passes = 0
        forward = weights.model.forward

        def held(*args: Any, **options: Any) -> Any:
            self.passes += 1
            if self.passes > after:
                self.reached.set()
                assert self.open.wait(30)
            return forward(*args, **options)

        monkeypatch.setattr(weights.model, "forward", held)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 30)


def test_requests_are_answered_in_the_order_in_which_they_came(
    local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, model, order = Gate(weights, monkeypatch), local(), []

    async def one(number: int) -> None:
        await model.complete(ask(f"n{number}"))
        order.append(number)

    async def run() -> None:
        tasks = [asyncio.create_task(one(number)) for number in range(5)]
        await gate.wait()
        gate.open.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert order == [0, 1, 2, 3, 4]


def test_the_event_loop_stays_free(local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, model = Gate(weights, monkeypatch), local()

    async def run() -> ModelReply:
        task = asyncio.create_task(model.complete(ask()))
        await gate.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert not task.done()
        gate.open.set()
        return await task

    assert asyncio.run(run()).completion_ids


def test_a_deadline_that_has_passed_is_an_error_at_once(local: Make) -> None:
    with pytest.raises(ModelError, match="the deadline came while waiting") as caught:
        answer(local(), ask(seconds=-1.0))
    assert not caught.value.retryable


def test_a_deadline_half_way_is_an_error_that_says_how_far_it_came(
    local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, model = Gate(weights, monkeypatch, after=3), local()

    async def run() -> None:
        with pytest.raises(ModelError, match=r"the deadline came after \d tokens of the answer, .* s after") as caught:
            await model.complete(ask(seconds=1.0))
        assert not caught.value.retryable
        passes = gate.passes
        gate.open.set()
        assert (await model.complete(ask("next"))).completion_ids
        assert gate.passes < passes + 2 * 12  # the late one was given up, not finished

    asyncio.run(run())


def test_a_deadline_in_the_queue_does_not_wait_for_its_turn(
    local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, model = Gate(weights, monkeypatch), local()

    async def run() -> None:
        first = asyncio.create_task(model.complete(ask()))
        await gate.wait()
        with pytest.raises(ModelError, match="while waiting for earlier requests"):
            await model.complete(ask(seconds=0.05))
        gate.open.set()
        await first

    asyncio.run(run())


def test_a_cancelled_request_frees_the_model(local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, model = Gate(weights, monkeypatch, after=1), local()

    async def run() -> None:
        task = asyncio.create_task(model.complete(ask(sampling=Sampling(max_tokens=1500, temperature=1.0, seed=1))))
        await gate.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.open.set()
        before = gate.passes
        await model.complete(ask("next"))
        assert gate.passes < before + 30

    asyncio.run(run())


def test_no_deadline_at_all_is_allowed(local: Make) -> None:
    assert answer(local(), ask(seconds=math.inf)).completion_ids


def test_a_closed_model_says_so(local: Make) -> None:
    model = local()

    async def run() -> None:
        await model.complete(ask())
        await model.aclose()
        await model.aclose()
        with pytest.raises(ModelError, match="has been closed"):
            await model.complete(ask())

    asyncio.run(run())


def test_a_failure_inside_is_a_model_error_and_the_next_request_is_answered(
    local: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = local()
    right = answer(model, ask()).completion_ids

    def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(weights.model, "forward", broken)
        with pytest.raises(ModelError, match="tiny failed: RuntimeError: out of memory"):
            answer(model, ask("again"))
    assert answer(model, ask()).completion_ids == right


@pytest.mark.parametrize("message", [{"role": "robot", "content": "x"}, {"role": "user", "content": 3}])
def test_a_bad_message_is_a_model_error(local: Make, message: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="message 0"):
        answer(local(), ask(messages=[message]))


def test_int8_weights_come_close(local: Make) -> None:
    from harnessctl.decode.int8 import quantise_linears

    tokenizer = make_tokenizer()
    whole, rounded = make_llama(tokenizer), make_llama(tokenizer)
    quantise_linears(rounded)
    for length in (4, 40):  # the kernel for few rows, and the product for many
        ids = torch.arange(3, 3 + length)[None]
        with torch.inference_mode():
            expected, got = (torch.softmax(model(input_ids=ids).logits, -1) for model in (whole, rounded))
        assert (expected - got).abs().max() < 0.05
    reply = answer(local(from_parts(rounded, tokenizer)), ask(tools=TOOLS, tool_choice="required"))
    assert reply.completion_ids


def test_a_model_with_linear_attention_answers_the_same_with_kept_contexts(local: Make) -> None:
    """Its states cannot be cut back: only a context that is a beginning as a whole may be used again."""
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    config = Qwen3NextConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        intermediate_size=32,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
        num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"],
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=2,
        num_experts_per_tok=1,
        eos_token_id=0,
    )
    weights = from_parts(Qwen3NextForCausalLM(config).eval(), tokenizer)
    model = local(weights)
    first = answer(model, ask("one"))
    assert first.prompt_ids is not None and first.completion_ids is not None
    seen = first.prompt_ids + first.completion_ids
    messages = [SYSTEM, {"role": "user", "content": "one"}, assistant(first), {"role": "user", "content": "two"}]
    for request in (ask("other"), ask(messages=messages, prefix_ids=seen, prefix_messages=3), ask("one")):
        assert answer(model, request).completion_ids == answer(local(weights), request).completion_ids


def test_arguments_keep_to_the_bounds_of_the_tool(local: Make) -> None:
    links = set()
    for seed in range(4):
        sampling = Sampling(temperature=2.0, seed=seed, max_tokens=200)
        reply = answer(local(max_calls=1), ask(tools=TOOLS[:1], tool_choice="required", sampling=sampling))
        links.add(json.loads(reply.tool_calls[0].arguments)["link"])
    assert all(LINK["properties"]["link"]["minimum"] <= link <= 99 for link in links)
    assert len(links) > 1


@pytest.mark.gpu
def test_cuda_computes_in_bfloat16_and_says_the_same_twice(local: Make) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    tokenizer = make_tokenizer()
    weights = from_parts(make_llama(tokenizer).to("cuda", torch.bfloat16), tokenizer)
    request = ask(tools=TOOLS, tool_choice="required", sampling=Sampling(temperature=1.0, seed=1, max_tokens=100))
    first, again = answer(local(weights), request), answer(local(weights), request)
    assert first.completion_ids == again.completion_ids
    assert first.tool_calls
