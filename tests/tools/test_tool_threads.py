"""Threads: a bounded number, reused, and a call that was given up before it began never runs."""

from __future__ import annotations

import contextvars
import threading

from harnessctl.runtime.tools.threads import Threads


def test_threads_are_reused_and_bounded() -> None:
    threads = Threads(limit=2)
    gate = threading.Barrier(3)
    futures = [threads.submit(lambda: (gate.wait(5), threading.get_ident())[1]) for _ in range(2)]
    gate.wait(5)
    used = {future.result(5) for future in futures}
    used |= {threads.submit(threading.get_ident).result(5) for _ in range(10)}
    assert len(used) == 2
    threads.close()


def test_a_call_given_up_before_its_thread_began_never_runs() -> None:
    threads = Threads(limit=1)
    gate, ran = threading.Event(), []
    holding = threads.submit(lambda: gate.wait(5))
    waiting = threads.submit(lambda: ran.append(1))
    assert waiting.cancel()
    gate.set()
    assert holding.result(5)
    assert threads.submit(lambda: len(ran)).result(5) == 0
    threads.close()


def test_threads_end_after_close_and_hold_no_exit_up() -> None:
    threads = Threads()
    thread = threads.submit(threading.current_thread).result(5)
    assert thread.daemon
    threads.close()
    thread.join(5)
    assert not thread.is_alive()


def test_whatever_is_raised_belongs_to_the_caller_and_context_is_carried() -> None:
    threads = Threads(limit=1)
    viewer = contextvars.ContextVar("viewer", default="")
    viewer.set("v1")

    def leave() -> None:
        raise SystemExit(3)

    assert isinstance(threads.submit(leave).exception(5), SystemExit)
    assert isinstance(threads.submit(lambda: next(iter([]))).exception(5), RuntimeError)
    assert threads.submit(viewer.get).result(5) == "v1"
    threads.close()
