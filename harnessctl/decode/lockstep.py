"""Lock-step: answers many requests at once, a token of each in every forward pass.

What always holds: what a round computes depends on its jobs and on what the slots hold, never on time (but for jobs that
are given up). A job that fails ends alone; only a pass that fails takes the jobs with it that it was for. A job whose
beginning another is about to read waits for that, and copies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from harnessctl.decode.answering import Answering
from harnessctl.decode.generation import CHUNK
from harnessctl.decode.job import RequestJob
from harnessctl.decode.kv import shared_length
from harnessctl.decode.passes import Feed, SlotReader
from harnessctl.decode.replying import make_reply
from harnessctl.decode.slots import Slots
from harnessctl.decode.speech import Speech
from harnessctl.errors import ModelError

#: Tokens of one pass: beyond, rows that are still reading their prompts wait for the next one.
PASS_TOKENS = 1024
#: A job waits for another's reading where that saves at least this many tokens: a pass costs about as much.
WORTH_WAITING = 32


class _Waiting(NamedTuple):
    """A job that has no slot yet."""

    job: RequestJob
    prompt: list[int]
    speech: Speech


class _Row:
    """A job with a slot. `rest` are the ids to be read next; `forced` those of them that the grammar added."""

    def __init__(self, waiting: _Waiting, slot: int, held: int) -> None:
        self.job, self.prompt, self.speech = waiting
        self.slot = slot
        self.rest = self.prompt[held:]
        self.is_reading = True
        self._forced: list[int] = []

    def feed(self, most: int) -> Feed:
        """What the row reads in the coming pass: of a long prompt at most `most` tokens."""
        if len(self.rest) > most:
            return Feed(self.slot, self.rest[:most], 0)
        self._forced = self.speech.forced()
        return Feed(self.slot, self.rest + self._forced, 1 + len(self._forced))

    def take(self, feed: Feed, logits: torch.Tensor) -> bool:
        """Go on with the logits of `feed`; true when the reply has ended."""
        if not feed.keep:
            del self.rest[: len(feed.ids)]
            return False
        speech, self.is_reading = self.speech, False
        speech.hear(self._forced, logits)
        if not speech.said.finish:
            self.rest = [speech.draw(logits[-1])]
        return speech.said.finish is not None


class LockStep:
    """Rounds over one model (a twin that attends to slots). At most `rows` jobs are read for at once; `slots` is how many
    sequences are kept."""

    def __init__(self, twin: Any, answering: Answering, *, rows: int, slots: int, device: torch.device) -> None:
        self._answering = answering
        self._rows = rows
        self._slots = Slots(slots, twin.config.num_hidden_layers)
        self._reader = SlotReader(twin, self._slots, device)

    def run(self, jobs: list[RequestJob]) -> None:
        """Answer the jobs; they are taken up in their order, and others take the places of those that end."""
        waiting = [begun for job in jobs if (begun := self._begin(job))]
        active: list[_Row] = []
        with torch.inference_mode():
            while waiting or active:
                waiting = self._admit(waiting, active)
                self._drop_given_up(active)
                if active:
                    self._pass(active)

    def _begin(self, job: RequestJob) -> _Waiting | None:
        try:
            job.check()
            job.stage = "reading the prompt"
            prompt, speech = self._answering.begin(job.request)
        except Exception as error:
            self._fail(job, error)
            return None
        job.said = speech.said
        return _Waiting(job, prompt, speech)

    def _admit(self, waiting: list[_Waiting], active: list[_Row]) -> list[_Waiting]:
        """Give slots to those who may begin; returns the others."""
        left: list[_Waiting] = []
        for begun in waiting:
            if len(active) == self._rows or self._is_coming(begun.prompt, active):
                left.append(begun)
                continue
            slot = self._slots.take(begun.prompt)
            active.append(_Row(begun, slot, len(self._slots.ids[slot])))
        return left

    def _is_coming(self, prompt: list[int], active: list[_Row]) -> bool:
        """Whether a row that is being read will soon hold much more of `prompt` than any slot does."""
        coming = max((shared_length(row.prompt, prompt) for row in active if row.is_reading), default=0)
        return min(coming, len(prompt) - 1) >= WORTH_WAITING + self._slots.shared(prompt)

    def _drop_given_up(self, active: list[_Row]) -> None:
        for row in list(active):
            try:
                row.job.check()
            except ModelError as error:
                self._leave(active, row, error)

    def _pass(self, active: list[_Row]) -> None:
        """One forward pass, and a token for each row that has its prompt read."""
        feeds: list[tuple[_Row, Feed]] = []
        budget = PASS_TOKENS
        for row in active:
            if not row.is_reading or budget > 0:
                feed = row.feed(max(1, min(CHUNK, budget)))
                budget -= len(feed.ids)
                feeds.append((row, feed))
        feeds.sort(key=lambda pair: pair[1].slot)
        try:
            found = self._reader.read([feed for _, feed in feeds])
        except Exception as error:  # torch may fail in many ways; what the slots hold is not known then
            for row in list(active):
                self._leave(active, row, error)
            self._slots.clear()
            return
        for (row, feed), logits in zip(feeds, found, strict=True):
            try:
                if row.take(feed, logits):
                    job, said = row.job, row.speech.said
                    job.answer(make_reply(job.request, row.prompt, said, started=job.started))
                    self._leave(active, row, None)
            except Exception as error:  # a row's own: its grammar, or logits that are no numbers
                self._leave(active, row, error)

    def _leave(self, active: list[_Row], row: _Row, error: Exception | None) -> None:
        active.remove(row)
        self._slots.park(row.slot)
        if error is not None:
            self._fail(row.job, error)

    def _fail(self, job: RequestJob, error: Exception) -> None:
        job.fail(error if isinstance(error, ModelError) else self._answering.failed(error))
