"""Student: the policy's own answers, sampled with the weights of the step that learns from them.

What always holds: answers are a function of the weights, the prompts and their seeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import torch

from harnessctl.errors import ModelError, TrainingError
from harnessctl.runtime.protocols import Model, ModelReply, ModelRequest, Sampling
from harnessctl.train.opd.config import StudentConfig
from harnessctl.train.opd.prompts import Prompt
from harnessctl.train.rl.backends import Backend
from harnessctl.train.sft.rows import Tokens


@dataclass(slots=True, frozen=True)
class Answers:
    """What was said: a sequence for each prompt, the sampled ids marked. `cut` counts those that did not come to an end."""

    tokens: list[Tokens]
    cut: int


class Student:
    """Answers by a backend (train/rl/backends), which is opened anew for each step: none may remember a context that other
    weights worked out, nor hold memory while gradients are taken."""

    def __init__(self, backend: Backend, config: StudentConfig) -> None:
        self._backend = backend
        self._config = config

    def answer(self, prompts: Sequence[Prompt]) -> Answers:
        """Sample an answer to each. TrainingError when the model fails."""
        try:
            with torch.no_grad():
                replies = asyncio.run(self._replies(prompts))
        except ModelError as error:
            raise TrainingError(f"the policy could not be sampled: {error.message}", hint=error.hint) from error
        return Answers(
            [_tokens(reply) for reply in replies], cut=sum(reply.finish_reason == "length" for reply in replies)
        )

    async def _replies(self, prompts: Sequence[Prompt]) -> list[ModelReply]:
        model = await self._backend.open()
        try:
            places = [self._backend.place() for _ in prompts]
            waiting = [self._reply(model, place, prompt) for place, prompt in zip(places, prompts, strict=True)]
            return await asyncio.gather(*waiting)
        finally:
            await self._backend.close()

    async def _reply(self, model: Model, place: AbstractAsyncContextManager[object], prompt: Prompt) -> ModelReply:
        asked = self._config
        request = ModelRequest(
            messages=prompt.question.messages,
            tools=prompt.question.tools,
            sampling=Sampling(
                temperature=asked.temperature, top_p=asked.top_p, max_tokens=asked.max_tokens, seed=prompt.seed
            ),
            deadline=float("inf"),
            request_id=prompt.id,
        )
        async with place:
            return await model.complete(request)


def _tokens(reply: ModelReply) -> Tokens:
    if reply.prompt_ids is None or reply.completion_ids is None:
        raise TrainingError("the model that samples gives no ids, and they are what is learnt from")
    ids = torch.tensor(reply.prompt_ids + reply.completion_ids, dtype=torch.int32)
    mask = torch.zeros_like(ids)
    mask[len(reply.prompt_ids) :] = 1
    return Tokens(ids, mask)
