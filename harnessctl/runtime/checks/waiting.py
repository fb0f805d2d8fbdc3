"""Waiting: what a hook's own code is awaited for, never past its deadline; whatever goes wrong is a HookError.

A coroutine is cancelled at the deadline, and closed if it refuses. A thread cannot be interrupted: one that outlives
its deadline runs on as a daemon. A coroutine that blocks without awaiting, and a plain function that runs on the event
loop, cannot be cut short by anybody.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Coroutine
from typing import Any, TypeVar

from harnessctl.errors import HookError
from harnessctl.runtime.code import place
from harnessctl.runtime.foreign import must_pass, said
from harnessctl.runtime.tools.timing import Expired, finish_within

MAX_ERROR_CHARS = 300

T = TypeVar("T")


async def within(coroutine: Coroutine[Any, Any, T], deadline: float) -> T:
    """What the coroutine returns; HookError at `deadline` (time.monotonic()) and for whatever it raises.

    A cancellation of the request goes on as CancelledError; one that the coroutine made up itself is an error.
    """
    try:
        return await finish_within(coroutine, max(0.0, deadline - time.monotonic()))
    except Expired as error:
        raise HookError("it timed out") from error
    except HookError:
        raise
    except BaseException as error:
        # A hook's code may raise anything; exit() in it must not end the process.
        if must_pass(error):
            raise
        made_up = "it raised " if isinstance(error, asyncio.CancelledError) else ""
        raise HookError(made_up + describe(error)) from error


def describe(error: BaseException) -> str:
    """Type, text and the line that `error` came through last: of the bundle's code, or else of any."""
    text = said(error)[:MAX_ERROR_CHARS]
    where = place(error)
    if not where and (frames := traceback.extract_tb(error.__traceback__)):
        where = f" ({frames[-1].filename}, line {frames[-1].lineno})"
    return f"{type(error).__name__}{f': {text}' if text else ''}{where}"
