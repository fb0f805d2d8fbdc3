"""Local model: a causal language model on this machine, as the runtime's `Model`.

What always holds: requests are answered one after another in the order in which they came, in a thread of their own;
a prompt's ids begin with the request's `prefix_ids`, and together with the completion's ids they are exactly what the
model read and said. `complete` raises ModelError and nothing else.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch

from harnessctl.decode.generation import Generation, Limits, Said
from harnessctl.decode.grammar import MAX_CALLS, Grammars
from harnessctl.decode.kv import ContextStore
from harnessctl.decode.output import parse_output
from harnessctl.decode.sampling import Sampler
from harnessctl.decode.template import ChatTemplate, Segment
from harnessctl.decode.tokens import TokenCodec
from harnessctl.decode.weights import Weights
from harnessctl.errors import ModelError
from harnessctl.records.trajectory import Usage
from harnessctl.runtime.protocols import ModelReply, ModelRequest, ModelToolCall, Sampling

#: What holds where a request leaves the choice to the model: greedy, so that an answer can be had again.
DEFAULTS = Sampling(temperature=0.0, top_p=1.0, max_tokens=512)


class _Job:
    """A request's way through the worker; the event loop sets `given_up`, the worker writes `stage` and `said`."""

    def __init__(self, deadline: float) -> None:
        self.started = time.monotonic()
        self.deadline = deadline
        self.given_up = threading.Event()
        self.stage = "waiting for earlier requests"
        self.said = Said()

    def check(self) -> None:
        """Raise when nobody waits for the answer any longer."""
        if self.given_up.is_set() or time.monotonic() >= self.deadline:
            raise self.late()

    def late(self) -> ModelError:
        """The error that says how far the answer had come."""
        where = f"after {len(self.said.ids)} tokens of the answer" if self.said.ids else f"while {self.stage}"
        waited = time.monotonic() - self.started
        return ModelError(f"the deadline came {where}, {waited:.1f} s after the model was asked", retryable=False)


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
        self._template = template or ChatTemplate()
        self.template: str | None = self._template.digest
        self._defaults = defaults
        self._codec = TokenCodec(weights.tokenizer, end=self._template.end)
        self._ends = [self._codec.end_id, *(end for end in weights.ends if end != self._codec.end_id)]
        self._banned = torch.tensor(sorted(self._codec.special_ids - set(self._ends)), dtype=torch.int64)
        self._grammars = Grammars(
            self._codec.source,
            vocab_size=weights.vocab_size,
            ends=self._ends,
            reasoning=reasoning,
            max_calls=max_calls,
        )
        self._contexts = ContextStore(weights.model.config, kv_bytes)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-model")
        self._jobs: set[_Job] = set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request in its turn. Raises ModelError: at the deadline (not retryable), for a prompt that does
        not fit the context, or when the model fails."""
        job = _Job(request.deadline)
        left = request.deadline - job.started
        if left <= 0:
            raise job.late()
        try:
            answer = asyncio.get_running_loop().run_in_executor(self._worker, self._answer, request, job)
        except RuntimeError as error:
            raise ModelError(f"the model {self.name} has been closed", retryable=False) from error
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
        template, codec = self._template, self._codec
        ids = list(request.prefix_ids or ())
        known = request.prefix_messages if ids else 0
        if ids and ids[-1] != codec.end_id:
            # The last reply was cut off by a limit or ended with another end token.
            ids += codec.encode([Segment(template.end, control=True)])
        for segments in template.render(request.messages[known:], request.tools, first=not ids):
            ids += codec.encode(segments)
        return ids + codec.encode(template.reply_opening())

    def _answer(self, request: ModelRequest, job: _Job) -> ModelReply:
        try:
            return self._speak(request, job)
        except ModelError:
            raise
        except Exception as error:  # the Protocol allows ModelError only, and torch may fail in many ways (memory)
            self._contexts.clear()
            raise ModelError(
                f"the model {self.name} failed: {type(error).__name__}: {error}", retryable=False
            ) from error

    def _speak(self, request: ModelRequest, job: _Job) -> ModelReply:
        job.check()
        job.stage = "reading the prompt"
        prompt = self.encode_prompt(request)
        room = self._weights.context_length - len(prompt)
        if room < 1:
            raise ModelError(
                f"the prompt has {len(prompt)} tokens; the context of {self.name} holds {self._weights.context_length}",
                retryable=False,
                hint="fewer tools, shorter skills, or a lower max_message_chars",
            )
        sampling = self._sampling(request)
        generation = Generation(
            self._weights,
            self._codec,
            sampler=Sampler(sampling, banned=self._banned),
            constraint=self._grammars.constraint(request.tools, request.tool_choice, request.reply_schema),
            limits=Limits(
                ends=frozenset(self._ends), stop=sampling.stop, max_tokens=min(sampling.max_tokens or room, room)
            ),
            check=job.check,
        )
        job.said = generation.said
        context = self._contexts.take(prompt)
        try:
            said = generation.run(context, prompt)
        except ModelError:
            self._contexts.put(context)
            raise
        self._contexts.put(context)
        return self._reply(request, prompt, said, job)

    def _sampling(self, request: ModelRequest) -> Sampling:
        asked, defaults = request.sampling, self._defaults
        return Sampling(
            temperature=defaults.temperature if asked.temperature is None else asked.temperature,
            top_p=defaults.top_p if asked.top_p is None else asked.top_p,
            max_tokens=defaults.max_tokens if asked.max_tokens is None else asked.max_tokens,
            seed=defaults.seed if asked.seed is None else asked.seed,
            stop=asked.stop or defaults.stop,
        )

    def _reply(self, request: ModelRequest, prompt: list[int], said: Said, job: _Job) -> ModelReply:
        output = parse_output(
            said.text, calls=bool(request.tools) and request.tool_choice != "none", is_cut=said.finish == "length"
        )
        # Unique within the conversation, and the same when it is had again.
        turn = len(request.messages)
        calls = [
            ModelToolCall(id=f"call_{turn}_{index}", name=call.name, arguments=call.arguments)
            for index, call in enumerate(output.calls)
        ]
        return ModelReply(
            content=output.content,
            tool_calls=calls,
            reasoning=output.reasoning,
            finish_reason="tool_calls" if calls and said.finish == "stop" else said.finish,
            usage=Usage(prompt_tokens=len(prompt), completion_tokens=len(said.ids)),
            ttft_s=None if said.first_token_at is None else said.first_token_at - job.started,
            prompt_ids=prompt,
            completion_ids=said.ids,
            logprobs=said.logprobs,
        )
