"""Many requests through one agent: bounded concurrency, turns of a session in order, each record written at once.

What always holds: a request's record is on disk before `on_done` hears of it; when the run is cancelled (SIGINT) or a
record cannot be written, what is under way is stopped and the file holds only whole lines.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator

import msgspec

from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.trajectory.writer import TrajectoryWriter

#: How many requests of busy sessions are read ahead, so that one session does not hold the others up.
READ_AHEAD = 1000


class BatchResult(msgspec.Struct, kw_only=True):
    """How many requests were carried out, and how many of the given ones were done before."""

    done: int = 0
    reused: int = 0


async def run_many(
    agent: Agent,
    requests: Iterable[CommentInput],
    *,
    writer: TrajectoryWriter | None = None,
    concurrency: int = 8,
    done_before: Container[str] = (),
    on_done: Callable[[Trajectory], None] | None = None,
) -> BatchResult:
    """Carry `requests` out, at most `concurrency` at once; those whose id is in `done_before` are passed over.

    `requests` is read as it is needed and may be a generator. StorageError when a record cannot be written: the rest
    is then not carried out.
    """
    if concurrency < 1:
        raise ValueError("concurrency is at least 1")
    batch = _Batch(agent, writer, on_done)
    source = iter(requests)
    try:
        await batch.run(source, concurrency, done_before)
    finally:
        await batch.stop()
    return batch.result


class _Batch:
    def __init__(
        self, agent: Agent, writer: TrajectoryWriter | None, on_done: Callable[[Trajectory], None] | None
    ) -> None:
        self.result = BatchResult()
        self._agent = agent
        self._writer = writer
        self._on_done = on_done
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[str, deque[CommentInput]] = {}
        self._read_ahead = 0

    async def run(self, source: Iterator[CommentInput], concurrency: int, done_before: Container[str]) -> None:
        """Start requests as places come free; raises what the first failing one raised."""
        for request in source:
            if request.id in done_before:
                self.result.reused += 1
                continue
            busy = self._waiting.get(request.session) if request.session is not None else None
            if busy is not None:
                busy.append(request)
                self._read_ahead += 1
            else:
                while len(self._tasks) >= concurrency:
                    await self._wait()
                if request.session is not None:
                    self._waiting[request.session] = deque()
                self._tasks.add(asyncio.create_task(self._carry_out(request)))
            while self._read_ahead >= READ_AHEAD:
                await self._wait()
        while self._tasks:
            await self._wait()

    async def stop(self) -> None:
        """Cancel what is under way and wait until it has ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait(self) -> None:
        done, self._tasks = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled():
                task.exception()  # of several that failed at once asyncio wants each looked at
        for task in done:
            task.result()

    async def _carry_out(self, request: CommentInput) -> None:
        """One request, then those of its session that came in meanwhile."""
        queue = self._waiting[request.session] if request.session is not None else deque[CommentInput]()
        while True:
            trajectory = await self._agent.run(request)
            if self._writer is not None:
                self._writer.write(trajectory)
            self.result.done += 1
            if self._on_done is not None:
                self._on_done(trajectory)
            if not queue:
                break
            request = queue.popleft()
            self._read_ahead -= 1
        if request.session is not None:
            del self._waiting[request.session]
