"""Local model: a causal language model on this machine, as the runtime's `Model`.

What always holds: requests are answered one after another in the order in which they came, in a thread of their own;
a prompt's ids begin with the request's `prefix_ids`, and together with the completion's ids they are exactly what the
model read and said. `complete` raises ModelError and nothing else.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from harnessctl.decode.answering import Answering
from harnessctl.decode.generation import Generation
from harnessctl.decode.grammar import MAX_CALLS
from harnessctl.decode.job import Job
from harnessctl.decode.kv import ContextStore
from harnessctl.decode.replying import DEFAULTS, make_reply
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.weights import Weights
from harnessctl.errors import ModelError
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling

__all__ = ["DEFAULTS", "LocalModel"]


class LocalModel:
    """A model in memory. `name` is what records call it; `template` is the digest of its chat template.

    `defaults` fill what a request's sampling leaves open. With `reasoning`, a `<think>` block may stand before a reply
    that is bound to a call or to a schema. `max_calls` bounds the calls of one reply. `kv_bytes` bounds the memory of the contexts kept between requests.
    """

    def __init__(
        self,
        weights: Weights,
        *,
        name: str,
        template: ChatTemplate | None = None,
        defaults: Sampling = DEFAULTS,
        reasoning: bool = False,
        max_calls: int = MAX_CALLS,
        kv_bytes: int = 1 << 30,
    ) -> None:
        self.name = name
        self._weights = weights
        self._answering = Answering(
            weights, name=name, template=template, defaults=defaults, reasoning=reasoning, max_calls=max_calls
        )
        self.template: str | None = self._answering.template
        self._contexts = ContextStore(weights.model.config, kv_bytes)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-model")
        self._jobs: set[Job] = set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request in its turn. Raises ModelError: at the deadline (not retryable), for a prompt that does
        not fit the context, or when the model fails."""
        job = Job(request.deadline)
        left = request.deadline - job.started
        if left <= 0:
            raise job.late()
        try:
            answer = asyncio.get_running_loop().run_in_executor(self._worker, self._answer, request, job)
        except RuntimeError as error:
            raise self._answering.closed() from error
        self._jobs.add(job)
        try:
            async with asyncio.timeout(left if left != float("inf") else None):
                return await answer
        except TimeoutError:
            raise job.late() from None
        finally:
            job.given_up.set()
            self._jobs.discard(job)

    async def aclose(self) -> None:
        """Give up what is under way and let go of the thread."""
        for job in self._jobs:
            job.given_up.set()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def encode_prompt(self, request: ModelRequest) -> list[int]:
        """The ids of everything that the model reads for this request, the opening of its reply included."""
        return self._answering.encoder.prompt(request)

    def _answer(self, request: ModelRequest, job: Job) -> ModelReply:
        try:
            return self._speak(request, job)
        except ModelError:
            raise
        except Exception as error:  # the Protocol allows ModelError only, and torch may fail in many ways (memory)
            self._contexts.clear()
            raise self._answering.failed(error) from error

    def _speak(self, request: ModelRequest, job: Job) -> ModelReply:
        job.check()
        job.stage = "reading the prompt"
        prompt, speech = self._answering.begin(request)
        job.said = speech.said
        weights = self._weights
        generation = Generation(weights.model, weights.device, speech, check=job.check)
        context = self._contexts.take(prompt)
        try:
            said = generation.run(context, prompt)
        except ModelError:
            self._contexts.put(context)
            raise
        self._contexts.put(context)
        return make_reply(request, prompt, said, started=job.started)
