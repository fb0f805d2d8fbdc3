from __future__ import annotations

import asyncio

import pytest

from harnessctl.runtime.deadline import Cutoff


def test_a_body_that_takes_too_long_is_a_timeout():
    async def main():
        with pytest.raises(TimeoutError), Cutoff(0):
            await asyncio.Event().wait()
        assert not asyncio.current_task().cancelling()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_a_body_that_is_done_in_time_leaves_no_timer():
    async def main():
        with Cutoff(60):
            await asyncio.sleep(0)
        return [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]

    assert asyncio.run(main()) == []


def test_its_own_errors_and_timeouts_pass():
    async def main():
        with pytest.raises(ZeroDivisionError), Cutoff(60):
            await asyncio.sleep(0)
            raise ZeroDivisionError
        with pytest.raises(TimeoutError, match="inner"), Cutoff(60):
            raise TimeoutError("inner")

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_cancellation_from_outside_stays_one(seconds):
    async def wait():
        with Cutoff(seconds):
            await asyncio.Event().wait()

    async def main():
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_the_inner_of_two_is_the_one_that_times_out():
    async def main():
        with Cutoff(60):
            with pytest.raises(TimeoutError), Cutoff(0):
                await asyncio.Event().wait()
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError), Cutoff(0), Cutoff(60):
            await asyncio.Event().wait()

    asyncio.run(main())


def test_a_body_that_swallows_its_cancellation_goes_on():
    async def main():
        with Cutoff(0):
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()
            await asyncio.sleep(0)
        return asyncio.current_task().cancelling()

    assert asyncio.run(main()) == 0


def test_it_needs_a_task():
    with pytest.raises(RuntimeError, match=r"no running event loop|needs a running task"):
        Cutoff(1).__enter__()
