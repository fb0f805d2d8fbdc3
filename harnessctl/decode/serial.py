"""Serial: answers the jobs of a round one after another, for models whose cache cannot be laid out in slots.

What always holds: the answers are those of `LockStep` but for rounding, and as many requests may be asked at once: they
are only not answered faster. Linear attention and sliding windows keep states that belong to no token, so that many
sequences of different lengths cannot share a pass, nor a beginning be copied.
"""

from __future__ import annotations

from typing import Any

import torch

from harnessctl.decode.answering import Answering
from harnessctl.decode.generation import Generation
from harnessctl.decode.job import RequestJob
from harnessctl.decode.kv import ContextStore
from harnessctl.decode.replying import make_reply
from harnessctl.errors import ModelError


class Serial:
    """Rounds over one model, a row at a time. `kv_bytes` bounds the memory of the contexts kept between requests."""

    def __init__(self, twin: Any, answering: Answering, *, kv_bytes: int, device: torch.device) -> None:
        self._twin = twin
        self._answering = answering
        self._device = device
        self._contexts = ContextStore(twin.config, kv_bytes)

    def run(self, jobs: list[RequestJob]) -> None:
        """Answer the jobs in their order."""
        for job in jobs:
            try:
                self._answer(job)
            except ModelError as error:
                job.fail(error)
            except Exception as error:  # torch may fail in many ways; what the contexts hold is not known then
                self._contexts.clear()
                job.fail(self._answering.failed(error))

    def _answer(self, job: RequestJob) -> None:
        job.check()
        job.stage = "reading the prompt"
        prompt, speech = self._answering.begin(job.request)
        job.said = speech.said
        context = self._contexts.take(prompt)
        try:
            said = Generation(self._twin, self._device, speech, check=job.check).run(context, prompt)
        except ModelError:
            self._contexts.put(context)
            raise
        self._contexts.put(context)
        job.answer(make_reply(job.request, prompt, said, started=job.started))
