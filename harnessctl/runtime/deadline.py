"""Deadline: a course that is cut off in time.

A timer costs as much as a tenth of a request whose model and tools answer at once: `within` makes one only if the
request ever waits, and a `Cutoff`, which cannot be moved, costs half of what `asyncio.timeout` does.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Cutoff:
    """`with Cutoff(seconds):` cancels its body when the seconds are over, which then is a TimeoutError.

    As with `asyncio.timeout`, a cancellation from outside stays one, and a body that swallows its cancellation goes on.
    """

    __slots__ = ("_before", "_is_due", "_seconds", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_due = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a Cutoff needs a running task")
        self._task = task
        self._before = task.cancelling()
        self._timer = task.get_loop().call_later(self._seconds, self._cut)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._is_due and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _cut(self) -> None:
        self._is_due = True
        self._task.cancel()


async def within(coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
    """What `coroutine` returns; TimeoutError when it waits for longer than `seconds`, it is then cancelled.

    It runs in the caller's task. A cancellation from outside is passed on as CancelledError.
    """
    try:
        waiting = coroutine.send(None)
    except StopIteration as done:
        return done.value
    with Cutoff(seconds):
        return await _rest(coroutine, waiting)


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Hand the coroutine's futures to the loop, and what comes back to the coroutine, until it ends."""
    try:
        while True:
            try:
                sent = yield waiting
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # a failed future or a cancellation, which the coroutine may catch
                waiting = coroutine.throw(error)
            else:
                waiting = coroutine.send(sent)
    except StopIteration as done:
        return done.value
