"""How fast rollouts are answered together: python benchmarks/batched.py [--rollouts 32] [--threads 1] [--rounds 3]

A random model of nano's size (5 layers, 256 wide, 8,000 words), prompts of about 350 tokens as the mini host has them,
`--rollouts` in groups of 8 (each group one harness and one question), three calls each of 25 sampled tokens with a tool's
result between them. Timed in turn in one process, the best of `--rounds`, by the clock and by this process's CPU time (which
holds on a busy machine with one thread):

    fresh      LocalModel, one request at a time, nothing kept between requests
    kept       LocalModel, one request at a time, contexts kept between requests
    batched    BatchedModel in float32, every rollout a member
    bfloat16   the same, computed in bfloat16

The bound: batched (the faster of the two) at least 5 times fresh. The answers of batched are compared with those of fresh.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from harnessctl.decode.batched import BatchedModel
from harnessctl.decode.local import LocalModel
from harnessctl.decode.weights import Weights, from_parts
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling
from harnessctl.train.base.config import MakeConfig
from harnessctl.train.base.making import llama_config

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CALLS, TOKENS, GROUP = 3, 25, 8
WORDS = 8000
LEAST = 5.0


def nano() -> Weights:
    """Random weights; a tokenizer of bytes, whose other words are never in a prompt."""
    pieces = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    pieces += [f"w{number}" for number in range(WORDS - len(pieces))]
    tokenizer = Tokenizer(models.BPE(vocab={piece: index for index, piece in enumerate(pieces)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    torch.manual_seed(0)
    config = llama_config(MakeConfig(), WORDS, {"eos_token_id": 0})
    return from_parts(LlamaForCausalLM(LlamaConfig(**config)).eval(), tokenizer)


def request(group: int, number: int, messages: list[dict[str, Any]], said: list[int] | None) -> ModelRequest:
    names = [f"{verb}_{group}" for verb in ("price", "stock")]
    parameters = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}
    return ModelRequest(
        messages=messages,
        tools=[
            {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}
            for name in names
        ],
        sampling=Sampling(temperature=1.0, seed=number, max_tokens=TOKENS),
        deadline=math.inf,
        prefix_ids=said,
        prefix_messages=len(messages) - 1 if said else 0,
        request_id=f"{group}:{number}",
    )


async def rollout(model: Any, number: int, member: Any) -> list[ModelReply]:
    group = number // GROUP
    system = {"role": "system", "content": f"You host shop {group}. Look a price up, then be short."}
    messages = [system, {"role": "user", "content": f"how much is link {group}?"}]
    replies: list[ModelReply] = []
    said: list[int] | None = None
    async with member:
        for _ in range(CALLS):
            reply = await model.complete(request(group, number, messages, said))
            assert reply.prompt_ids is not None and reply.completion_ids is not None
            said = reply.prompt_ids + reply.completion_ids
            call = {"role": "assistant", "content": reply.content}
            messages = [*messages, call, {"role": "tool", "content": '{"price": 12}'}]
            replies.append(reply)
    return replies


async def together(model: BatchedModel, count: int) -> list[ModelReply]:
    model.reset()
    members = [model.member() for _ in range(count)]
    found = await asyncio.gather(*(rollout(model, number, member) for number, member in enumerate(members)))
    return [reply for replies in found for reply in replies]


async def one_by_one(model: LocalModel, count: int, *, keep: bool) -> list[ModelReply]:
    found: list[ModelReply] = []
    model._contexts.clear()
    complete = model.complete

    async def afresh(asked: ModelRequest) -> ModelReply:
        if not keep:
            model._contexts.clear()
        return await complete(asked)

    model.complete = afresh  # type: ignore[method-assign]
    for number in range(count):
        found += await rollout(model, number, nullcontext())
    return found


class Cost(NamedTuple):
    wall: float
    cpu: float
    tokens: int
    prompt: int
    ids: list[list[int] | None]


def timed(run: Callable[[], Any]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    replies = asyncio.run(run())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    said = sum(reply.usage.completion_tokens for reply in replies)
    return Cost(wall, cpu, said, replies[0].usage.prompt_tokens, [reply.completion_ids for reply in replies])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=32)
    parser.add_argument("--alone", type=int, default=8, help="how many of them are also answered one at a time")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profile", action="store_true", help="profile the batched run in float32, and nothing else")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    weights = nano()
    local = LocalModel(weights, name="nano")
    batched = {
        "batched": BatchedModel(weights, name="nano", rows=options.rollouts),
        "bfloat16": BatchedModel(weights, name="nano", rows=options.rollouts, dtype="bfloat16"),
    }
    if options.profile:
        return profile(batched["batched"], options.rollouts)
    runs: dict[str, Callable[[], Any]] = {
        "fresh": lambda: one_by_one(LocalModel(weights, name="nano"), options.alone, keep=False),
        "kept": lambda: one_by_one(LocalModel(weights, name="nano"), options.alone, keep=True),
        **{name: (lambda model=model: together(model, options.rollouts)) for name, model in batched.items()},
    }
    costs: dict[str, list[Cost]] = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            costs[name].append(timed(run))
    rates = {
        name: {"wall": max(c.tokens / c.wall for c in found), "cpu": max(c.tokens / c.cpu for c in found)}
        for name, found in costs.items()
    }
    alone, beside = costs["fresh"][0].ids, costs["batched"][0].ids
    same = sum(left == right for left, right in zip(alone, beside, strict=False))
    best = {
        kind: max(rates["batched"][kind], rates["bfloat16"][kind]) / rates["fresh"][kind] for kind in ("wall", "cpu")
    }
    if options.json:
        print(json.dumps({"rates": rates, "ratio": best, "same": same, "compared": len(alone)}))
    else:
        print(f"prompt {costs['fresh'][0].prompt} tokens, {options.rollouts} rollouts, {options.threads} thread(s)")
        print(f"{'sampled tokens a second':24}{'clock':>10}{'CPU':>10}{'of fresh':>10}")
        for name, rate in rates.items():
            print(f"{name:24}{rate['wall']:10.1f}{rate['cpu']:10.1f}{rate['cpu'] / rates['fresh']['cpu']:9.1f}x")
        print(f"{same} of {len(alone)} replies of batched have the ids of fresh")
    asyncio.run(local.aclose())
    for model in batched.values():
        asyncio.run(model.aclose())
    return 0 if best["cpu"] >= LEAST else 1


def profile(model: BatchedModel, rollouts: int) -> int:
    """Where the computing thread spends its time."""
    timed(lambda: together(model, rollouts))
    run, profiler = model._rounds._run, cProfile.Profile()
    model._rounds._run = lambda jobs: profiler.runcall(run, jobs)
    timed(lambda: together(model, rollouts))
    profiler.print_stats("tottime")
    asyncio.run(model.aclose())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
