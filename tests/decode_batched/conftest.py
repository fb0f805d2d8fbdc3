"""Batched models over the tiny weights of tests/decode, and what each of their passes read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from tokenizers import Tokenizer

from harnessctl.decode.batched import BatchedModel
from harnessctl.decode.local import LocalModel
from harnessctl.decode.passes import Feed, SlotReader
from harnessctl.decode.weights import Weights, from_parts
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling
from tests.decode.conftest import TOOLS, _few_threads, make_llama, make_tokenizer

__all__ = ["_few_threads"]

SYSTEM = {"role": "system", "content": "You are the host of a shop. " * 4}


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return make_tokenizer()


@pytest.fixture(scope="session")
def weights(tokenizer: Tokenizer) -> Weights:
    return from_parts(make_llama(tokenizer), tokenizer)


@pytest.fixture
def batched(weights: Weights) -> Iterator[Callable[..., BatchedModel]]:
    """Makes models over the same weights; their threads end with the test."""
    made: list[BatchedModel] = []

    def make(given: Weights = weights, **options: Any) -> BatchedModel:
        made.append(BatchedModel(given, name="tiny", **options))
        return made[-1]

    yield make
    for model in made:
        model._rounds.close()
        model._rounds._worker.shutdown(wait=True)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[list[Feed]]:
    """What every pass read, in order."""
    found: list[list[Feed]] = []
    read = SlotReader.read

    def noted(self: SlotReader, feeds: list[Feed]) -> Any:
        found.append(list(feeds))
        return read(self, feeds)

    monkeypatch.setattr(SlotReader, "read", noted)
    return found


def ask(number: int, *, seconds: float = 60.0, **given: Any) -> ModelRequest:
    """One of many unlike requests: with and without tools, greedy and sampled, short and long, bound and free."""
    content = given.pop("content", "how much is it? " * (1 + number % 4) + str(number))
    tools = given.get("tools", TOOLS if number % 2 else [])
    fields = {
        "messages": [SYSTEM, {"role": "user", "content": content}],
        "tools": tools,
        "tool_choice": "required" if tools and number % 4 == 1 else "auto",
        "sampling": Sampling(
            temperature=(0.0, 1.0, 0.7)[number % 3],
            top_p=0.9 if number % 5 == 0 else None,
            seed=number,
            max_tokens=6 + number,
            stop=["e"] if number % 7 == 3 else [],
        ),
        "request_id": f"r{number}",
    }
    return ModelRequest(deadline=time.monotonic() + seconds, **fields | given)


def answers(model: Any, requests: Sequence[ModelRequest]) -> list[ModelReply]:
    """The replies to requests that are made at once."""

    async def together() -> list[ModelReply]:
        return await asyncio.gather(*(model.complete(request) for request in requests))

    return asyncio.run(together())


def alone(weights: Weights, requests: Sequence[ModelRequest], **options: Any) -> list[ModelReply]:
    """The replies of a LocalModel, one at a time."""
    model = LocalModel(weights, name="tiny", **options)
    try:
        return [asyncio.run(model.complete(request)) for request in requests]
    finally:
        model._worker.shutdown(wait=True)


def assert_same(found: Sequence[ModelReply], expected: Sequence[ModelReply], *, within: float = 1e-5) -> None:
    """The same ids, texts and calls; log-probabilities but for rounding."""
    for got, right in zip(found, expected, strict=True):
        assert got.completion_ids == right.completion_ids
        assert got.logprobs == pytest.approx(right.logprobs, abs=within)
        assert (got.prompt_ids, got.content, got.tool_calls) == (right.prompt_ids, right.content, right.tool_calls)
        assert (got.finish_reason, got.reasoning, got.usage) == (right.finish_reason, right.reasoning, right.usage)
