"""Rounds: which requests are answered together, so that a batch does not depend on who was quick.

What always holds: a round of members begins when every one of them has a request waiting, and holds the requests of
members alone, in the order of their ids; so where all members are there before the first request, the rounds are
the same however long each of them takes in between. Requests of nobody's make rounds of their own, whenever the
computing thread is free, with whatever waits at that moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

from harnessctl.decode.job import RequestJob
from harnessctl.runtime.protocols import ModelRequest

_MEMBERS: ContextVar[tuple[Member, ...]] = ContextVar("members", default=())


class Member:
    """One that takes part in rounds: `async with` makes the requests of the running task (and of tasks it starts) its
    own, and leaves at the end, however that comes. It counts from the moment it is made."""

    def __init__(self, rounds: Rounds, number: int) -> None:
        self._rounds = rounds
        self.number = number

    async def __aenter__(self) -> Member:
        _MEMBERS.set((*_MEMBERS.get(), self))
        return self

    async def __aexit__(self, *_: object) -> None:
        _MEMBERS.set(tuple(member for member in _MEMBERS.get() if member is not self))
        self.leave()

    def leave(self) -> None:
        """Take part no longer; for a member that is never entered, on which the others would wait."""
        self._rounds.leave(self)


class Rounds:
    """The waiting requests of one model, and the thread that computes. `run` answers the jobs of one round."""

    def __init__(self, run: Callable[[list[RequestJob]], None]) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batched-model")
        self._members: set[Member] = set()
        self._waiting: dict[RequestJob, Member | None] = {}
        self._under_way: list[RequestJob] = []
        self._count = 0
        self._is_busy = False
        self.is_closed = False

    def join(self) -> Member:
        """A new member."""
        with self._lock:
            self._count += 1
            member = Member(self, self._count)
            self._members.add(member)
        return member

    def leave(self, member: Member) -> None:
        """Take a member out, who may have left before; the others no longer wait for it."""
        with self._lock:
            self._members.discard(member)
        self.start()

    def add(self, request: ModelRequest) -> RequestJob:
        """Let a request wait for its round, which `start` may begin."""
        with self._lock:
            member = next((one for one in reversed(_MEMBERS.get()) if one in self._members), None)
            seed = -1 if request.sampling.seed is None else request.sampling.seed
            number = member.number if member else 0
            job = RequestJob(request, (request.request_id, seed, len(request.messages), number))
            self._waiting[job] = member
        return job

    def drop(self, job: RequestJob) -> None:
        """Give a request up, wherever it is."""
        job.given_up.set()
        with self._lock:
            self._waiting.pop(job, None)

    def start(self) -> None:
        """Begin a round, if one may begin and none is under way."""
        with self._lock:
            if self._is_busy or self.is_closed or not self._is_ready():
                return
            self._is_busy = True
            self._worker.submit(self._work)

    def close(self) -> list[RequestJob]:
        """Begin no round any more, and give up what waits or is under way: these are returned."""
        with self._lock:
            self.is_closed = True
            left = [*self._waiting, *self._under_way]
            self._waiting.clear()
        for job in left:
            job.given_up.set()
        self._worker.shutdown(wait=False, cancel_futures=True)
        return left

    def _is_ready(self) -> bool:
        return self._is_whole() or None in self._waiting.values()

    def _is_whole(self) -> bool:
        """Whether every member has a request waiting."""
        return bool(self._members) and self._members <= set(self._waiting.values())

    def _next(self) -> list[RequestJob]:
        """The jobs of the next round, in order; none when nothing may begin."""
        with self._lock:
            whole = self._is_whole()
            jobs = [job for job, member in self._waiting.items() if (member is not None) == whole]
            for job in jobs:
                del self._waiting[job]
            self._under_way = sorted(jobs, key=lambda job: job.order)
            self._is_busy = bool(jobs)
            return self._under_way

    def _work(self) -> None:
        while jobs := self._next():
            self._run(jobs)
