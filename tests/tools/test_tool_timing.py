"""Timing: a coroutine that never waits costs no timer; one that waits is given its seconds and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from harnessctl.runtime.tools import timing
from harnessctl.runtime.tools.timing import Expired, finish_within


def run(coroutine: Coroutine[Any, Any, Any], seconds: float) -> Any:
    async def main() -> Any:
        return await finish_within(coroutine, seconds)

    return asyncio.run(main())


def test_a_coroutine_that_never_waits_sets_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def inner() -> int:
        return 1

    async def quick() -> int:
        return await inner()

    async def main() -> int:
        monkeypatch.setattr(asyncio.get_running_loop(), "call_later", None)
        return await finish_within(quick(), 5)

    assert asyncio.run(main()) == 1


def test_results_and_errors_come_through_whether_it_waits_or_not() -> None:
    async def fails(wait: bool) -> None:
        if wait:
            await asyncio.sleep(0)
        raise KeyError("x")

    async def gives(value: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, value)
        return await future

    assert run(gives([1]), 5) == [1]
    for wait in (False, True):
        with pytest.raises(KeyError):
            run(fails(wait), 5)


def test_a_late_coroutine_may_tidy_up_and_is_expired() -> None:
    done: list[str] = []

    async def late() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("tidied")
        return "never"

    with pytest.raises(Expired):
        run(late(), 0.01)
    assert done == ["tidied"]


def test_one_that_returns_when_told_to_stop_is_expired_all_the_same() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        return "late"

    with pytest.raises(Expired):
        run(stubborn(), 0.01)


def test_one_that_ignores_everything_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "GRACE_S", 0.01)
    tries: list[int] = []

    async def deaf() -> None:
        for n in range(20):
            try:
                await asyncio.Event().wait()
            except BaseException:
                tries.append(n)

    coroutine = deaf()
    with pytest.raises(Expired):
        run(coroutine, 0.01)
    assert tries == [0, 1]
    while len(tries) < 20:  # let it end, or Python complains when it throws it away
        with suppress(RuntimeError):
            coroutine.close()


def test_timeouts_inside_and_outside_keep_their_meaning() -> None:
    async def inner() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "its own"
        return ""

    async def outer() -> str:
        try:
            async with asyncio.timeout(0.01):
                await finish_within(asyncio.Event().wait(), 5)
        except TimeoutError:
            return "the outer one"
        return ""

    assert run(inner(), 5) == "its own"
    assert asyncio.run(outer()) == "the outer one"


def test_a_cancellation_from_outside_is_never_an_expiry() -> None:
    async def main() -> None:
        task = asyncio.create_task(finish_within_task(5))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def finish_within_task(seconds: float) -> None:
        await finish_within(asyncio.Event().wait(), seconds)

    asyncio.run(main())


def test_nothing_is_left_of_a_timer_after_the_end() -> None:
    async def main() -> int:
        task = asyncio.current_task()
        assert task is not None
        await finish_within(asyncio.sleep(0), 0.01)
        await asyncio.sleep(0.02)
        return task.cancelling()

    assert asyncio.run(main()) == 0
