"""Batched model: answers many requests at once with one causal language model, as the runtime's `Model`.

What always holds: a reply is what `LocalModel` would have said, but for the rounding of another order of sums; prompt
and completion ids are exactly what was read and said; a request that fails, or is given up, harms no other.
`complete` raises ModelError and nothing else.
"""

from __future__ import annotations

import threading
from typing import Any, Literal

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from harnessctl.decode.answering import Answering
from harnessctl.decode.grammar import MAX_CALLS
from harnessctl.decode.job import RequestJob
from harnessctl.decode.lockstep import LockStep
from harnessctl.decode.passes import ATTENTION
from harnessctl.decode.replying import DEFAULTS
from harnessctl.decode.rounds import Member, Rounds
from harnessctl.decode.serial import Serial
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.twin import make_twin
from harnessctl.decode.weights import Weights
from harnessctl.errors import ModelError
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling

ComputeDtype = Literal["own", "float32", "bfloat16"]
_DTYPES = {"own": None, "float32": torch.float32, "bfloat16": torch.bfloat16}


class BatchedModel:
    """A model in memory. `name` is what records call it; `template` is the digest of its chat template.

    `rows` is how many requests are computed together, `slots` (default: twice as many) how many sequences are kept so
    that what they share is not read again; each takes as much memory as the longest. `dtype` is what is computed in:
    `own` is that of the weights, which are then shared; else converted copies are made. Log-probabilities are taken in
    float32 always. `defaults`, `reasoning`, `max_calls` are those of LocalModel. Without `grammar` nothing is bound.

    The weights may change between rounds: `reset` after each change. `is_batched` is false for a model whose cache cannot
    be laid out in slots (linear attention, sliding windows, an attention of its own kind): its requests are answered one
    after another, `kv_bytes` bounds the contexts that it keeps, and all else holds.
    """

    def __init__(
        self,
        weights: Weights,
        *,
        name: str,
        template: ChatTemplate | None = None,
        defaults: Sampling = DEFAULTS,
        rows: int = 32,
        slots: int | None = None,
        grammar: bool = True,
        reasoning: bool = False,
        max_calls: int = MAX_CALLS,
        dtype: ComputeDtype = "own",
        kv_bytes: int = 1 << 30,
    ) -> None:
        self.name = name
        self._weights = weights
        self._answering = Answering(
            weights,
            name=name,
            template=template,
            defaults=defaults,
            reasoning=reasoning,
            max_calls=max_calls,
            grammar=grammar,
        )
        self.template: str | None = self._answering.template
        self.is_batched = can_batch(weights)
        self._sizes = rows, max(slots or 2 * rows, rows)
        self._dtype = _DTYPES[dtype]
        self._kv_bytes = kv_bytes
        self._engine: LockStep | Serial | None = None
        self._is_stale = threading.Event()
        self._rounds = Rounds(self._run)

    def member(self) -> Member:
        """A place in the rounds, for one that asks in turn: `async with model.member(): ...` around each trajectory.

        It counts from this call on. Make all of them before the first is entered, and each round holds the same requests
        however the tasks are delayed; `leave()` one that is not entered after all.
        """
        return self._rounds.join()

    def reset(self) -> None:
        """The weights have changed: before the next round all keys and values are forgotten, and copies made anew."""
        self._is_stale.set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request in its round. Raises ModelError: at the deadline (not retryable), for a prompt that does
        not fit the context, or when the model fails."""
        job = self._rounds.add(request)
        try:
            if self._rounds.is_closed:
                raise self._answering.closed()
            if job.deadline <= job.started:
                raise job.late()
            # After the tasks that are to run now: what they ask shares the round.
            job.loop.call_soon(self._rounds.start)
            return await job.outcome()
        finally:
            self._rounds.drop(job)

    async def aclose(self) -> None:
        """Give up what is under way and let go of the thread."""
        for job in self._rounds.close():
            job.fail(self._answering.closed())

    def encode_prompt(self, request: ModelRequest) -> list[int]:
        """The ids of everything that the model reads for this request, the opening of its reply included."""
        return self._answering.encoder.prompt(request)

    def _run(self, jobs: list[RequestJob]) -> None:
        """Answer a round, in the computing thread."""
        try:
            if self._engine is None or self._is_stale.is_set():
                self._is_stale.clear()
                self._engine = None  # its memory is free before the next one's is taken
                self._engine = self._make_engine()
            self._engine.run(jobs)
        except Exception as error:  # a fault of ours: nobody may wait for ever
            self._engine = None
            failure = error if isinstance(error, ModelError) else self._answering.failed(error)
            for job in jobs:
                job.fail(failure)

    def _make_engine(self) -> LockStep | Serial:
        model, device = self._weights.model, self._weights.device
        if not self.is_batched:
            return Serial(make_twin(model, dtype=self._dtype), self._answering, kv_bytes=self._kv_bytes, device=device)
        rows, slots = self._sizes
        twin = make_twin(model, dtype=self._dtype, attention=ATTENTION)
        return LockStep(twin, self._answering, rows=rows, slots=slots, device=device)


def can_batch(weights: Weights) -> bool:
    """Whether the model's layers all keep plain keys and values, and attend through transformers' own interface."""
    model: Any = weights.model
    layers = DynamicCache(config=model.config).layers
    plain = bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
    return plain and bool(model._can_set_attn_implementation())
