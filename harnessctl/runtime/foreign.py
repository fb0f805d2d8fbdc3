"""Foreign code: what the functions of tools and hooks, and a model, may raise, and how it is told.

What always holds: a cancellation of the request, the closing of a coroutine and a person's Ctrl-C go through the
runtime; whatever else foreign code raises, BaseExceptions too, is the failure of that code and of nothing around it.
"""

from __future__ import annotations

import asyncio
import signal
import traceback


def said(error: BaseException) -> str:
    """What `error` says; nothing where even that fails."""
    try:
        return str(error)
    except BaseException as fault:  # the class is foreign too
        if is_interrupt(fault):
            raise
        return ""


def tamed(error: BaseException) -> RuntimeError:
    """An ordinary error in place of one that event loops, futures or coroutines would take for a signal to them."""
    text = said(error)
    return RuntimeError(f"{type(error).__name__}{f': {text}' if text else ''}").with_traceback(error.__traceback__)


def is_interrupt(error: BaseException) -> bool:
    """Whether `error` is a KeyboardInterrupt that a person sent, and not one that code raised by itself.

    The handler that an event loop's runner puts in place raises from a frame of its own. Python's stock handler raises
    wherever the program is, so that under it every KeyboardInterrupt counts.
    """
    if not isinstance(error, KeyboardInterrupt):
        return False
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return not frames or not frames[-1].filename.startswith("<bundle ")


def is_cancelled() -> bool:
    """Whether the task that runs has been told to stop: if not, a CancelledError is one that foreign code made up."""
    task = asyncio.current_task()
    return task is None or bool(task.cancelling())


def must_pass(error: BaseException) -> bool:
    """Whether `error`, caught around foreign code, has to go on to whoever stops the request."""
    if isinstance(error, asyncio.CancelledError):
        return is_cancelled()
    return isinstance(error, GeneratorExit) or is_interrupt(error)
