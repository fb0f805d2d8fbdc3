"""Workers: who carries items out: this process, one after the other or many at once, or several processes.

What always holds: processes give outcomes in the order of the places, and their number changes nothing of them; one
worker process never outlives the process that started it.

Processes are spawned, not forked (see `augment.workers`), so a script that evaluates with `workers` above 1 needs the
usual `if __name__ == "__main__":`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from harnessctl.augment.workers import results
from harnessctl.errors import HarnessctlError
from harnessctl.evaluate.job import Job, PackedJob
from harnessctl.evaluate.outcome import Outcome
from harnessctl.evaluate.repeats import repeated
from harnessctl.evaluate.setting import Setting
from harnessctl.evaluate.settled import settled

#: Items that are carried out before their outcomes are handed on.
CHUNK = 8


def outcomes(job: Job, places: Sequence[int], setting: Setting) -> Iterator[Outcome]:
    """The outcomes of what stands at `places` (place p is repeat p // size of item p % size). In their order, but for
    policies that wait, as they come.

    `setting` is this process's own. HarnessctlError says what stopped it.
    """
    if job.config.is_at_once and job.config.workers > 1:
        return _by_processes(job, places, setting)
    if job.config.is_at_once:
        return _one_by_one(job, places, setting)
    return _at_once(job, places, setting)


def _one_by_one(job: Job, places: Sequence[int], setting: Setting) -> Iterator[Outcome]:
    with _Worker(job, setting) as worker:
        for chunk in _chunks(places):
            yield from worker.carry_out(chunk)


def _at_once(job: Job, places: Sequence[int], setting: Setting) -> Iterator[Outcome]:
    """Up to `workers` requests under way in this process."""
    waiting = iter(places)
    under_way: set[asyncio.Task[Outcome]] = set()
    with _Worker(job, setting) as worker:

        async def some() -> set[asyncio.Task[Outcome]]:
            for place in islice(waiting, job.config.workers - len(under_way)):
                under_way.add(asyncio.ensure_future(worker.one(place)))
            done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED) if under_way else (set(), ())
            return done

        while done := worker.run(some()):
            under_way -= done
            for task in sorted(done, key=lambda task: task.exception() is not None):
                yield task.result()


def _by_processes(job: Job, places: Sequence[int], setting: Setting) -> Iterator[Outcome]:
    for answer in results(_Opener(PackedJob.of(job, setting), places), 0, len(places), workers=job.config.workers):
        if isinstance(answer, _Failed):
            raise HarnessctlError(answer.message, hint=answer.hint)
        yield answer


def _chunks(places: Sequence[int]) -> Iterator[Sequence[int]]:
    return (places[start : start + CHUNK] for start in range(0, len(places), CHUNK))


class _Failed(msgspec.Struct):
    """What stopped a worker process; errors themselves do not all survive the way between processes."""

    message: str
    hint: str = ""


@dataclass(slots=True, frozen=True)
class _Opener:
    """Makes what a worker process calls with the place of an item among `places`."""

    packed: PackedJob
    places: Sequence[int]

    def __call__(self) -> Callable[[int], Outcome | _Failed]:
        worker: _Worker | None = None

        def carry_out(place: int) -> Outcome | _Failed:
            nonlocal worker
            try:
                if worker is None:
                    job = self.packed.job()
                    worker = _Worker(job, self.packed.setting(job))
                return worker.carry_out_here(self.places[place])
            except HarnessctlError as error:
                return _Failed(error.message, error.hint)

        return carry_out


class _Worker:
    """Rollouts and their event loop."""

    def __init__(self, job: Job, setting: Setting) -> None:
        self._runner = asyncio.Runner()
        self._rollouts = job.rollouts(setting)
        self._size = job.size
        self._settled = ExitStack()
        self._settled.enter_context(settled())

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run on the worker's loop."""
        return self._runner.run(coroutine)

    async def one(self, place: int) -> Outcome:
        """Carry out what stands at one place: an item, or a repeat of it."""
        repeat, number = divmod(place, self._size)
        return await self._rollouts.carry_out(repeated(self._rollouts.item(number), repeat))

    def carry_out(self, places: Sequence[int]) -> list[Outcome]:
        """Carry items out one after the other."""

        async def all_of_them() -> list[Outcome]:
            return [await self.one(place) for place in places]

        return self.run(all_of_them())

    def carry_out_here(self, place: int) -> Outcome:
        """Carry one item out in a process that no interrupt reaches: what `run` does about those costs a tenth of an item."""
        return self._runner.get_loop().run_until_complete(self.one(place))

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._runner.run(self._rollouts.aclose())
        finally:
            self._runner.close()
            self._settled.close()
