"""Job: a request's way through the thread that computes."""

from __future__ import annotations

import asyncio
import threading
import time

from harnessctl.decode.replying import Said
from harnessctl.errors import ModelError
from harnessctl.runtime.protocols import ModelReply, ModelRequest


class Job:
    """One request under way; the event loop sets `given_up`, the worker writes `stage` and `said`.

    `deadline` is on time.monotonic().
    """

    def __init__(self, deadline: float) -> None:
        self.started = time.monotonic()
        self.deadline = deadline
        self.given_up = threading.Event()
        self.stage = "waiting for earlier requests"
        self.said = Said()

    def check(self) -> None:
        """Raise ModelError when nobody waits for the answer any longer."""
        if self.given_up.is_set() or time.monotonic() >= self.deadline:
            raise self.late()

    def late(self) -> ModelError:
        """The error that says how far the answer had come."""
        where = f"after {len(self.said.ids)} tokens of the answer" if self.said.ids else f"while {self.stage}"
        waited = time.monotonic() - self.started
        return ModelError(f"the deadline came {where}, {waited:.1f} s after the model was asked", retryable=False)


class RequestJob(Job):
    """A job that knows its request, and hands its outcome over to the event loop that it was made in.

    `order` says where it stands among the jobs of a round.
    """

    def __init__(self, request: ModelRequest, order: tuple[str, int, int, int]) -> None:
        super().__init__(request.deadline)
        self.request = request
        self.stage = "waiting for its round"
        self.order = order
        self.loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[ModelReply] = self.loop.create_future()

    def answer(self, reply: ModelReply) -> None:
        """Hand the reply over; from any thread."""
        self._hand_over(reply, None)

    def fail(self, error: ModelError) -> None:
        """Hand an error over; from any thread. Nothing happens where an outcome was handed over before."""
        self._hand_over(None, error)

    async def outcome(self) -> ModelReply:
        """The reply, or its error, as soon as it is there; at the deadline the error that says how far it came."""
        left = self.deadline - self.started
        try:
            async with asyncio.timeout(left if left != float("inf") else None):
                return await self._outcome
        except TimeoutError:
            raise self.late() from None

    def _hand_over(self, reply: ModelReply | None, error: ModelError | None) -> None:
        try:
            self.loop.call_soon_threadsafe(self._settle, reply, error)
        except RuntimeError:  # the loop has ended, and with it whoever waited
            self.given_up.set()

    def _settle(self, reply: ModelReply | None, error: ModelError | None) -> None:
        if self._outcome.done():
            return
        if error is not None:
            self._outcome.set_exception(error)
        elif reply is not None:
            self._outcome.set_result(reply)
