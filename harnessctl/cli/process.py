"""Process: the signals and the standard streams of the program while a job runs."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def open_streams() -> None:
    """Put /dev/null where a standard stream was closed by whoever started us, so that no file that is opened later
    takes its number and what is printed goes nowhere."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - lives as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale that cannot show a character costs that character alone
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def ended_by_signals() -> Generator[None]:
    """SIGTERM and SIGHUP end the job as Ctrl-C does: what is under way is stopped and the run's record says so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        # Called and not raised: a script that puts us aside with `&`, and a tool in os.system, have SIGINT ignored.
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    wanted = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def undisturbed() -> Generator[None]:
    """Signals that end the program are passed over: the block is short, and must not be left half-done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *_ENDING)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stdout_kept_for_data() -> Generator[None]:
    """What tools, hooks and their programs print goes to standard error, so that ours on standard output is data alone."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
