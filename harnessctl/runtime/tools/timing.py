"""Timing: a coroutine is given some seconds, and costs no timer unless it really waits."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from harnessctl.runtime.foreign import tamed

T = TypeVar("T")

#: How long a coroutine that is told to stop may take to tidy up before it is closed.
GRACE_S = 1.0


class Expired(Exception):
    """The seconds were over before the coroutine was."""


@types.coroutine
def finish_within(coroutine: Coroutine[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    """What `coroutine` returns; Expired when it takes longer than `seconds`.

    It runs in the task of the caller, and its first stretch runs at once: one that never waits is as cheap as a plain
    `await` (`asyncio.timeout` costs eight times as much as the small tool in it). When the time is over it is
    cancelled; one that swallows its cancellation and goes on is closed after GRACE_S, so that it cannot hold the
    request. A cancellation from outside is passed on as it is.
    """
    try:
        waiting = coroutine.send(None)
    except StopIteration as done:
        return done.value
    except GeneratorExit as error:
        raise tamed(error) from error
    task = asyncio.current_task()
    if task is None:
        coroutine.close()
        raise RuntimeError("finish_within needs a running task")
    return (yield from _Limited(task, coroutine, seconds).run(waiting))


class _Limited:
    """The part of a coroutine's run after it first waited."""

    def __init__(self, task: asyncio.Task[Any], coroutine: Coroutine[Any, Any, Any], seconds: float) -> None:
        self._task = task
        self._coroutine = coroutine
        self._due = False
        self._timer = task.get_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._due = True
        self._task.cancel()

    def run(self, waiting: Any) -> Generator[Any, Any, Any]:
        """Hand the coroutine's futures to the loop until it ends."""
        told = closed = False
        before = self._task.cancelling()
        try:
            while True:
                try:
                    sent = yield waiting
                except asyncio.CancelledError as error:
                    due, self._due = self._due, False
                    if due and self._task.uncancel() <= before:
                        if told:
                            self._close()
                            raise Expired from None
                        told = True
                        self._timer = self._task.get_loop().call_later(GRACE_S, self._expire)
                    waiting = self._coroutine.throw(error)
                except GeneratorExit:
                    closed = True
                    self._coroutine.close()
                    raise
                except BaseException as error:  # what it waited for failed, which it may catch
                    waiting = self._coroutine.throw(error)
                else:
                    waiting = self._coroutine.send(sent)
        except StopIteration as done:
            if told:
                raise Expired from None
            return done.value
        except GeneratorExit as error:
            if closed:
                raise
            raise tamed(error) from error
        except asyncio.CancelledError:
            if told and self._task.cancelling() <= before:
                raise Expired from None
            raise
        finally:
            self._timer.cancel()

    def _close(self) -> None:
        """Close the coroutine; one that ignores even that is left to the garbage collector."""
        try:
            self._coroutine.close()
        except RuntimeError:
            pass
