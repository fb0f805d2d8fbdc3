"""Workers: processes that make variants by chunks of numbers, whose results come back in the order of the numbers.

What always holds: what comes of a number depends on the number alone, so that any count of workers gives the same; at
most two chunks for each worker are under way, however slowly their results are taken; a worker ends when the program that
started it does, however that ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from harnessctl.errors import HarnessctlError

T = TypeVar("T")
#: Makes what a worker works with, once in each process; it and its results are pickled.
Opener = Callable[[], Callable[[int], T]]

CHUNK = 32

_work: Callable[[int], Any] | None = None


def results(opener: Opener[T], start: int, stop: int, *, workers: int) -> Iterator[T]:
    """What `opener()` makes of each number from `start` up to `stop`, in order. With one worker no process is started.

    What a number raises is raised here. HarnessctlError when a worker dies (the system ended it for its memory, say).
    """
    if workers == 1:
        yield from map(opener(), range(start, stop))
        return
    chunks = iter([range(at, min(at + CHUNK, stop)) for at in range(start, stop, CHUNK)])
    # Not forked: threads of this process (a progress bar's) could hold locks that nobody lets go of in the copy.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_open, initargs=(opener,))
    waiting: deque[Future[list[T]]] = deque()
    try:
        for chunk in chunks:
            with _without_interrupts():
                waiting.append(pool.submit(_run, chunk))
            if len(waiting) >= 2 * workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    except BrokenProcessPool as error:
        raise HarnessctlError(
            "a worker process died while it made variants", hint="fewer workers take less memory; --resume goes on"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _without_interrupts() -> Generator[None]:
    """Ctrl-C waits until the block has ended. A process that is started in it never sees one: it would die with a
    traceback while it starts, and is told to end by us."""
    resource_tracker.ensure_running()  # started later, it would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _open(opener: Opener[Any]) -> None:
    """Make this process ready; nobody is left behind when the parent is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    global _work
    _work = opener()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _run(numbers: range) -> list[Any]:
    assert _work is not None
    return [_work(number) for number in numbers]
