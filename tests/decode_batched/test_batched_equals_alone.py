"""Answered together or alone: the same ids, whatever the batch, the order, the model and what was kept."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from transformers import (
    DynamicCache,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from harnessctl.decode.batched import BatchedModel
from harnessctl.decode.lockstep import LockStep
from harnessctl.decode.weights import Weights, from_parts
from harnessctl.runtime.protocols import ModelReply, Sampling
from tests.decode.conftest import make_llama
from tests.decode_batched.conftest import SYSTEM, alone, answers, ask, assert_same

Make = Callable[..., BatchedModel]


@pytest.fixture(scope="module")
def right(weights: Weights) -> list[ModelReply]:
    """What a LocalModel says to the first 14 requests."""
    return alone(weights, [ask(number) for number in range(14)])


@pytest.mark.parametrize("rows", [1, 3, 32])
def test_replies_are_those_of_one_at_a_time(batched: Make, right: list[ModelReply], rows: int) -> None:
    assert_same(answers(batched(rows=rows), [ask(number) for number in range(14)]), right)


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_arrival_changes_nothing(batched: Make, right: list[ModelReply], seed: int) -> None:
    order = random.Random(seed).sample(range(14), 14)
    model = batched(rows=5)
    for part in (order[:7], order[7:], order[:9]):  # the last part meets sequences that are kept
        assert_same(answers(model, [ask(number) for number in part]), [right[number] for number in part])


def test_without_a_grammar_nothing_is_bound(batched: Make, weights: Weights) -> None:
    free = answers(batched(grammar=False), [ask(number) for number in range(1, 10, 4)])
    plain = alone(weights, [ask(number, tools=[], tool_choice="auto") for number in range(1, 10, 4)])
    assert [len(reply.completion_ids or []) for reply in free] == [len(r.completion_ids or []) for r in plain]
    assert not any(reply.tool_calls for reply in free)


def conversation(model: Any, turns: int) -> list[ModelReply]:
    """The last replies of six conversations that go on side by side."""
    told = [[SYSTEM, {"role": "user", "content": f"question {number}"}] for number in range(6)]
    seen: list[list[int] | None] = [None] * 6
    covered = [0] * 6
    replies: list[ModelReply] = []
    for turn in range(turns):
        requests = [
            ask(
                number,
                messages=told[number],
                prefix_ids=seen[number],
                prefix_messages=covered[number],
                sampling=Sampling(temperature=1.0, seed=turn * 7 + number, max_tokens=(5, 24, 8)[turn]),
            )
            for number in range(6)
        ]
        replies = answers(model, requests)
        for number, reply in enumerate(replies):
            assert reply.prompt_ids is not None and reply.completion_ids is not None
            assert reply.prompt_ids[: len(seen[number] or [])] == (seen[number] or [])
            seen[number] = reply.prompt_ids + reply.completion_ids
            calls = [{"id": c.id, "function": {"name": c.name, "arguments": c.arguments}} for c in reply.tool_calls]
            told[number] = [*told[number], {"role": "assistant", "content": reply.content, "tool_calls": calls}]
            covered[number] = len(told[number])
            told[number].append({"role": "tool", "content": '{"ok": true, "n": ' + str(turn) + "}"})
    return replies


def test_conversations_side_by_side_are_those_held_alone(batched: Make, weights: Weights) -> None:
    together, single = batched(rows=4, slots=7), batched(rows=1, slots=1)
    for left, right in zip(conversation(together, 3), conversation(single, 3), strict=True):
        assert left.completion_ids == right.completion_ids
        ids = (left.prompt_ids or []) + (left.completion_ids or [])
        with torch.inference_mode():
            rows = torch.log_softmax(weights.model(input_ids=torch.tensor([ids])).logits[0].float(), dim=-1)
        said = torch.tensor(left.completion_ids)
        naive = rows[len(left.prompt_ids or []) - 1 : -1].gather(1, said[:, None])[:, 0].tolist()
        assert left.logprobs == pytest.approx(naive, abs=1e-4)


def test_slots_hold_the_keys_and_values_of_their_ids(batched: Make, weights: Weights) -> None:
    """Read again from nothing: what was copied, taken over, cut and written side by side is what belongs there."""
    model = batched(rows=4, slots=9)
    conversation(model, 3)
    answers(model, [ask(number) for number in range(12)])
    assert isinstance(model._engine, LockStep)
    slots = model._engine._slots
    assert sum(bool(ids) for ids in slots.ids) == 9
    for slot, ids in enumerate(slots.ids):
        cache = DynamicCache(config=weights.model.config)
        with torch.inference_mode():
            weights.model(input_ids=torch.tensor([ids]), cache=cache, use_cache=True)
        for layer, room in zip(cache.layers, slots.layers, strict=True):
            assert room.keys is not None and room.values is not None
            assert layer.keys is not None and layer.values is not None
            torch.testing.assert_close(room.keys[slot, :, : len(ids)], layer.keys[0], atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(room.values[slot, :, : len(ids)], layer.values[0], atol=1e-4, rtol=1e-4)


def test_long_prompts_grow_the_room(batched: Make, weights: Weights) -> None:
    requests = [ask(number, content="long " * (20 + 60 * (number % 4))) for number in range(8)]
    model = batched(rows=8)
    answers(model, [ask(0)])
    assert_same(answers(model, requests), alone(weights, requests))
    assert isinstance(model._engine, LockStep)
    assert model._engine._slots.room > 1024


def small(tokenizer: Tokenizer, **more: Any) -> dict[str, Any]:
    return {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "eos_token_id": 0,
        "initializer_range": 0.2,
        **more,
    }


EXPERTS = {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
LINEAR = {
    "layer_types": ["linear_attention", "full_attention"],
    "shared_expert_intermediate_size": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}


@pytest.mark.parametrize(
    ("kind", "config", "more", "is_batched"),
    [
        (Qwen3ForCausalLM, Qwen3Config, {}, True),
        (Qwen3MoeForCausalLM, Qwen3MoeConfig, EXPERTS, True),
        (
            Qwen3ForCausalLM,
            Qwen3Config,
            {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
            False,
        ),
        (Qwen3NextForCausalLM, Qwen3NextConfig, EXPERTS | LINEAR, False),
    ],
    ids=["qwen3", "qwen3_moe", "sliding", "qwen3_next"],
)
def test_other_architectures(
    batched: Make, tokenizer: Tokenizer, kind: Any, config: Any, more: dict[str, Any], is_batched: bool
) -> None:
    torch.manual_seed(0)
    weights = from_parts(kind(config(**small(tokenizer, **more))).eval(), tokenizer)
    model = batched(weights)
    assert model.is_batched is is_batched
    requests = [ask(number) for number in range(6)]
    assert_same(answers(model, requests), alone(weights, requests))
    assert_same(answers(model, requests[:2]), alone(weights, requests[:2]))


def test_a_training_model_stays_as_it_is(batched: Make, tokenizer: Tokenizer, weights: Weights) -> None:
    """Dropout is off while it speaks, and what it attends with is its own again (and was all the time)."""
    training = make_llama(tokenizer)
    training.config.attention_dropout = 0.5
    training.train()
    before = {name: value.clone() for name, value in training.state_dict().items()}
    requests = [ask(number) for number in range(4)]
    assert_same(answers(batched(from_parts(training, tokenizer)), requests), alone(weights, requests))
    assert training.training
    assert training.config._attn_implementation == "sdpa"
    assert all(parameter.requires_grad for parameter in training.parameters())
    assert all(torch.equal(value, before[name]) for name, value in training.state_dict().items())


@pytest.mark.parametrize("dtype", ["own", "bfloat16"])
def test_weights_that_changed_are_used_after_a_reset(batched: Make, tokenizer: Tokenizer, dtype: Any) -> None:
    requests = [ask(number, sampling=Sampling(temperature=1.0, seed=number, max_tokens=20)) for number in range(4)]
    live = make_llama(tokenizer)
    model = batched(from_parts(live, tokenizer), dtype=dtype)
    first = answers(model, requests)
    with torch.no_grad():
        for parameter in live.parameters():
            parameter.mul_(1.1)
    model.reset()
    changed = answers(model, requests)
    fresh = answers(batched(from_parts(live, tokenizer), dtype=dtype), requests)
    assert [r.completion_ids for r in changed] == [r.completion_ids for r in fresh]
    assert [r.logprobs for r in changed] == [r.logprobs for r in fresh]
    assert [r.logprobs for r in changed] != [r.logprobs for r in first]


def test_bfloat16_comes_close_and_leaves_the_weights(batched: Make, weights: Weights) -> None:
    requests = [ask(number) for number in range(6)]
    found = answers(batched(dtype="bfloat16"), requests)
    assert {parameter.dtype for parameter in weights.model.parameters()} == {torch.float32}
    for request, reply in zip(requests, found, strict=True):
        assert reply.prompt_ids is not None and reply.completion_ids is not None and reply.logprobs is not None
        ids = reply.prompt_ids + reply.completion_ids
        with torch.inference_mode():
            logits = weights.model(input_ids=torch.tensor([ids])).logits[0].float()
        logits = logits / (request.sampling.temperature or 1.0)
        rows = torch.log_softmax(logits, dim=-1)[len(reply.prompt_ids) - 1 : -1]
        naive = rows.gather(1, torch.tensor(reply.completion_ids)[:, None])[:, 0].tolist()
        assert reply.logprobs == pytest.approx(naive, abs=0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_adapters_are_computed_with_as_they_are_switched(batched: Make, tokenizer: Tokenizer) -> None:
    from peft import LoraConfig, get_peft_model

    adapted: Any = get_peft_model(make_llama(tokenizer), LoraConfig(r=4, target_modules="all-linear"))
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    weights = from_parts(adapted, tokenizer)
    requests = [ask(number) for number in range(6)]
    model = batched(weights)
    with_adapter = answers(model, requests)
    assert_same(with_adapter, alone(weights, requests))
    with adapted.disable_adapter():
        model.reset()
        without = answers(model, requests)
        assert_same(without, alone(weights, requests))
    assert [r.completion_ids for r in with_adapter] != [r.completion_ids for r in without]
