"""Harvest: what one scenario gives: its pairs with harnesses, a teacher's tries at each, and what the judge lets pass.

What always holds: what comes of a scenario depends on the settings and its number alone; every try is counted, with what
became of it; a try that fails is never the end of the run.

    scenario x (original + variants made for what gold needs)
      -> up to `candidates` tries, each made again up to `retries` times where the teacher itself failed
      -> judge -> retries trimmed, but for a share that is kept whole -> ids and mask of each token path
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harnessctl.augment.stream import Stream
from harnessctl.data.samples import samples_of
from harnessctl.data.trimming import trim_retries
from harnessctl.errors import LawBroken
from harnessctl.evaluate.items import Item
from harnessctl.evaluate.setting import Setting
from harnessctl.records.scenario import Needs, Scenario
from harnessctl.records.sft_data import Harvest, Sample, ranges
from harnessctl.records.trajectory import Trajectory
from harnessctl.train.sft.config import SftConfig
from harnessctl.train.sft.judge import Judge, failure
from harnessctl.train.sft.teacher import Teacher


@dataclass(slots=True, frozen=True)
class Harvester:
    """`scenario` gives the scenario of a number; `complain` is told why a teacher gave no answer."""

    setting: Setting
    teacher: Teacher
    judge: Judge
    config: SftConfig
    scenario: Callable[[int], Scenario]
    complain: Callable[[str], None] = lambda _: None

    async def of(self, number: int) -> Harvest:
        """The samples of scenario `number`."""
        scenario = self.scenario(number)
        counts: Counter[str] = Counter()
        samples: list[Sample] = []
        for item in self._items(number, scenario, counts):
            counts["pairs"] += 1
            kept = await self._kept(item, counts)
            counts["pairs with a sample"] += bool(kept)
            samples += kept
        return Harvest(number=number, scenario=scenario.id, samples=samples, counts=dict(counts))

    def _items(self, number: int, scenario: Scenario, counts: Counter[str]) -> Iterator[Item]:
        """The scenario on the original harness, and with `hsa` on variants that leave what its gold needs."""
        yield Item(number, scenario, self.setting.bundle)
        if self.config.harness == "fixed":
            return
        needs = scenario.gold.needs if scenario.gold is not None else Needs()
        many = self.config.data.variants
        for place in range(number * many, (number + 1) * many):
            try:
                variant = self.setting.variant(place, needs)
            except LawBroken as error:
                counts[f"no variant: law {error.law}"] += 1
                continue
            yield Item(number, scenario, variant.bundle, variant.variation)

    async def _kept(self, item: Item, counts: Counter[str]) -> list[Sample]:
        """The samples of the first `keep` candidates that are accepted and differ from each other."""
        teacher = self.config.teacher
        accepted: list[list[Sample]] = []
        for candidate in range(teacher.candidates):
            made = await self._candidate(item, candidate, counts)
            if made is None:
                continue
            if made in accepted:
                counts["rejected: the same again"] += 1
                continue
            counts["accepted"] += 1
            accepted.append(made)
            if len(accepted) == teacher.keep:
                break
        return [sample for made in accepted for sample in made]

    async def _candidate(self, item: Item, candidate: int, counts: Counter[str]) -> list[Sample] | None:
        tries = 1 + self.config.teacher.retries
        for attempt in range(candidate * tries, (candidate + 1) * tries):
            counts["tries"] += 1
            trajectory, score = await self.teacher.play(item, attempt)
            failed = failure(trajectory)
            if failed is None:
                break
            counts[f"failed: {failed}"] += 1
            for call in trajectory.calls[-1:]:
                self.complain(call.error or "")
        else:
            counts["rejected: the teacher gave no answer"] += 1
            return None
        why = self.judge.rejection(trajectory, score)
        if why is not None:
            counts[f"rejected: {why}"] += 1
            return None
        trimmed = self._trimmed(item, trajectory, attempt, counts)
        samples = [
            Sample(
                scenario=item.scenario.id,
                bundle=item.bundle.digest,
                ids=list(found.ids),
                learnt=ranges(found.mask),
                variant=None if item.variation is None else item.variation.number,
            )
            for found in samples_of(trimmed)
        ]
        if not samples:
            counts["rejected: nothing to learn"] += 1
            return None
        if any(len(sample.ids) > self.config.data.max_tokens for sample in samples):
            counts[f"rejected: longer than data.max_tokens={self.config.data.max_tokens}"] += 1
            return None
        return samples

    def _trimmed(self, item: Item, trajectory: Trajectory, attempt: int, counts: Counter[str]) -> Trajectory:
        place = "original" if item.variation is None else item.variation.number
        stream = Stream(self.config.seed, "retries", item.scenario.id, place, attempt)
        keep = stream.chance(self.config.data.keep_retry_fraction)
        trimmed = trim_retries(trajectory, keep=keep, encoder=self.teacher.encoder)
        if trimmed is not trajectory:
            counts["retries kept" if keep else "retries trimmed"] += 1
        return trimmed
