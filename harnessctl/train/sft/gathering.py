"""Gathering: the harvests of all scenarios, by several processes where the teacher answers at once, else many at a time.

What always holds: what is gathered does not depend on the number of workers; it stops with the counts where too little
comes of it, before a teacher's time is spent on all of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.augment.workers import results
from harnessctl.errors import HarnessctlError, TrainingError, UsageError
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.job import Job as Evaluation
from harnessctl.evaluate.job import PackedJob
from harnessctl.evaluate.setting import Setting
from harnessctl.evaluate.settled import settled
from harnessctl.records.scenario import Scenario
from harnessctl.records.sft_data import Harvest
from harnessctl.simulate.scenario_files import read_scenarios
from harnessctl.train.sft.config import SftConfig
from harnessctl.train.sft.harvest import Harvester
from harnessctl.train.sft.judge import RuleJudge
from harnessctl.train.sft.teacher import Teacher, Tongue

#: Added to the seed, so that no scenario of a training is one that an evaluation draws.
SEEDS_APART = 1 << 31
#: Pairs after which too small a yield stops the gathering.
ENOUGH = 50


def evaluation_config(config: SftConfig) -> EvalConfig:
    """How the teacher's tries are carried out."""
    data, teacher = config.data, config.teacher
    return EvalConfig(
        suite="live-qa",
        model=teacher.model,
        sampling=teacher.sampling,
        policy=teacher.policy,
        world=data.world,
        seed=SEEDS_APART + config.seed,
        envelope=data.envelope,
        rewriter="rules",
        faults=data.faults,
        limits=data.limits,
        flaw=teacher.flaw,
        flaw_rate=teacher.flaw_rate,
    )


@dataclass(slots=True, frozen=True)
class Source:
    """Where scenarios come from: the world's stream, or the file's own, all of them unless `n` says otherwise."""

    setting: Setting
    given: Sequence[Scenario] | None
    n: int

    @classmethod
    def of(cls, setting: Setting, config: SftConfig) -> Source:
        """UsageError for scenarios of another harness, and where nothing says how many there are to be."""
        data = config.data
        if data.scenarios is None:
            if data.n is None:
                raise UsageError("how many scenarios are to be drawn?", hint="give data.n=COUNT")
            return cls(setting, None, data.n)
        given = list(read_scenarios(Path(data.scenarios)))[: data.n]
        other = next((one for one in given if one.harness != setting.bundle.name), None)
        if other is not None:
            raise UsageError(
                f"{data.scenarios}: the scenario {other.id} is for the harness {other.harness!r}; got {setting.bundle.name!r}"
            )
        return cls(setting, given, len(given))

    def scenario(self, number: int) -> Scenario:
        """Scenario `number`, from 0."""
        return self.setting.scenario(number) if self.given is None else self.given[number]


@dataclass(frozen=True)
class Gathering:
    """Gathers for one config. `evaluation` holds project, bundle and judges."""

    evaluation: Evaluation
    config: SftConfig
    tongue: Tongue
    counts: Counter[str] = field(default_factory=Counter)
    #: What an endpoint said instead of answers.
    errors: Counter[str] = field(default_factory=Counter)

    def harvests(self, numbers: Sequence[int], setting: Setting) -> Generator[Harvest]:
        """The harvests of `numbers`: in order from an oracle, as they come from an endpoint. TrainingError below the
        least yield."""
        workers = self.config.data.workers
        if self.config.teacher.policy != "oracle":
            found = self._under_way(numbers, setting, workers)
        elif workers > 1:
            opener = _Opener(PackedJob.of(self.evaluation), self.config, self.tongue, numbers)
            found = (_unless_failed(one) for one in results(opener, 0, len(numbers), workers=workers))
        else:
            found = self._one_by_one(numbers, setting)
        with closing(found):
            for harvest in found:
                self.add(harvest.counts)
                yield harvest
                self.check(least=ENOUGH)

    def add(self, counts: Mapping[str, int]) -> None:
        """Count what was gathered."""
        self.counts.update(counts)

    def check(self, *, least: int = 1) -> None:
        """TrainingError with the counts where too few of at least `least` pairs gave a sample."""
        pairs, kept = self.counts["pairs"], self.counts["pairs with a sample"]
        wanted = self.config.data.min_yield
        if pairs >= least and (kept < wanted * pairs or not kept):
            raise TrainingError(
                f"{kept} of {pairs} pairs of scenario and harness gave a sample, and at least {wanted:.0%} must "
                f"(data.min_yield); {told(self.counts)}{self._complaint()}",
                hint="a better teacher, more teacher.candidates, or lower bounds of the judge",
            )

    def _hear(self, error: str) -> None:
        self.errors[error] += 1

    def _complaint(self) -> str:
        """What the teacher failed of most."""
        said = [error for error, _ in self.errors.most_common() if error]
        return f"; the teacher most often said: {said[0].splitlines()[0][:300]}" if said else ""

    def _one_by_one(self, numbers: Sequence[int], setting: Setting) -> Generator[Harvest]:
        with _Worker(self.evaluation, self.config, self.tongue, setting) as worker:
            for number in numbers:
                yield worker.run(worker.harvester.of(number))

    def _under_way(self, numbers: Sequence[int], setting: Setting, workers: int) -> Generator[Harvest]:
        waiting = iter(numbers)
        tasks: set[asyncio.Task[Harvest]] = set()
        with _Worker(self.evaluation, self.config, self.tongue, setting, self._hear) as worker:

            async def some() -> set[asyncio.Task[Harvest]]:
                for number in islice(waiting, workers - len(tasks)):
                    tasks.add(asyncio.ensure_future(worker.harvester.of(number)))
                if not tasks:
                    return set()
                return (await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED))[0]

            while done := worker.run(some()):
                tasks -= done
                for task in done:
                    yield task.result()


def told(counts: Mapping[str, int]) -> str:
    """Counts as a sentence's part: the most frequent first."""
    found = sorted(((name, n) for name, n in counts.items() if n), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {n}" for name, n in found) or "nothing was tried"


class _Failed(msgspec.Struct):
    """What stopped a worker process; errors themselves do not all survive the way between processes."""

    message: str
    hint: str = ""


def _unless_failed(found: Harvest | _Failed) -> Harvest:
    if isinstance(found, _Failed):
        raise HarnessctlError(found.message, hint=found.hint)
    return found


@dataclass(frozen=True)
class _Opener:
    """Makes what a worker process calls with the place of a scenario among `numbers`."""

    packed: PackedJob
    config: SftConfig
    tongue: Tongue
    numbers: Sequence[int]

    def __call__(self) -> Callable[[int], Harvest | _Failed]:
        return self._harvest

    def _harvest(self, place: int) -> Harvest | _Failed:
        try:
            return self._worker.run(self._worker.harvester.of(self.numbers[place]))
        except HarnessctlError as error:
            return _Failed(error.message, error.hint)

    @cached_property
    def _worker(self) -> _Worker:
        evaluation = self.packed.job()
        return _Worker(evaluation, self.config, self.tongue, evaluation.setting())


class _Worker:
    """A harvester and its event loop."""

    def __init__(
        self,
        evaluation: Evaluation,
        config: SftConfig,
        tongue: Tongue,
        setting: Setting,
        complain: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._runner = asyncio.Runner()
        self._teacher = Teacher(setting, tongue, judges=evaluation.judge)
        source = Source.of(setting, config)
        self.harvester = Harvester(setting, self._teacher, RuleJudge(config.judge), config, source.scenario, complain)
        self._settled = settled()
        self._settled.__enter__()

    def run(self, coroutine: Any) -> Any:
        """Run on the worker's loop."""
        return self._runner.run(coroutine)

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._runner.run(self._teacher.aclose())
        finally:
            self._runner.close()
            self._settled.__exit__(None, None, None)
