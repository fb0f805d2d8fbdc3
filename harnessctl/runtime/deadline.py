"""Deadline: a request's whole course, cut off in time; the timer is made only if the request ever waits.

A timer costs as much as a tenth of a request whose model and tools answer at once.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


async def within(coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
    """What `coroutine` returns; TimeoutError when it waits for longer than `seconds`, it is then cancelled.

    It runs in the caller's task. A cancellation from outside is passed on as CancelledError.
    """
    try:
        waiting = coroutine.send(None)
    except StopIteration as done:
        return done.value
    async with asyncio.timeout(seconds):
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
