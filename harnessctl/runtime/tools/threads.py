"""Threads: plain Python tools run in a bounded set of daemon threads, so that one that hangs holds nobody up.

What always holds: a call that was given up before its thread began never runs; a call that never returns keeps one
thread of `limit` and neither the event loop nor the end of the process waits for it (the standard executor does).
"""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from harnessctl.runtime.foreign import tamed

_Job = tuple[Future[Any], Callable[[], Any]]


class Threads:
    """At most `limit` threads, started when they are first needed and idle between calls."""

    def __init__(self, limit: int = 32) -> None:
        self._limit = limit
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._started = 0

    @functools.cached_property
    def _idle(self) -> threading.Semaphore:
        # Made with the first call: most tools of most agents never need a thread.
        return threading.Semaphore(0)

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Run `call` in a thread, with the caller's context variables; it waits where all threads are taken.

        Called from the event loop only.
        """
        future: Future[Any] = Future()
        context = contextvars.copy_context()
        self._jobs.put((future, lambda: context.run(call)))
        if not self._idle.acquire(blocking=False) and self._started < self._limit:
            self._started += 1
            threading.Thread(target=self._work, name=f"harnessctl-tool-{self._started}", daemon=True).start()
        return future

    def close(self) -> None:
        """Let idle threads end; one that is held by a call ends when the call does."""
        for _ in range(self._started):
            self._jobs.put(None)
        self._started = 0

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except (StopIteration, KeyboardInterrupt, GeneratorExit) as error:
                    # No future can hand these to its waiter: they would end the coroutine, or the program.
                    future.set_exception(tamed(error))
                except BaseException as error:
                    # Whatever else a tool raises belongs to its caller, and must not end the thread.
                    future.set_exception(error)
            del future, call, job
            self._idle.release()
