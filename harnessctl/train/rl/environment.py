"""Environment: groups of rollouts: a scenario drawn, a harness state chosen, and the policy let loose on it n times [3.3, 3.4].

What always holds: group `number` has a scenario and a harness state of its own, which depend on the seed and the number
alone; its rollouts depend on those, on the weights and on their own numbers, not on what else is carried out beside them. All
rollouts of a group meet the same faults, so that they differ by what the policy did and by nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from harnessctl.augment.stream import Stream
from harnessctl.errors import LawBroken
from harnessctl.evaluate.items import Item
from harnessctl.evaluate.repeats import SameFaults, named
from harnessctl.evaluate.rollouts import Rollouts
from harnessctl.evaluate.setting import Setting
from harnessctl.records.scenario import Needs
from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.judge import BundleSource
from harnessctl.runtime.protocols import FaultSource
from harnessctl.simulate.faults import Faults
from harnessctl.train.rl.backends import Backend
from harnessctl.train.rl.reward import Reward

#: Variants that are tried for a group before it goes without.
TRIES = 4


@dataclass(slots=True, frozen=True)
class Rollout:
    """One trajectory and its scores."""

    trajectory: Trajectory
    score: Score


@dataclass(slots=True, frozen=True)
class Group:
    """The rollouts of one scenario under one harness state. `variant` is null for the original harness."""

    number: int
    variant: int | None
    rollouts: Sequence[Rollout]


class Environment(Protocol):
    """Where rollouts come from."""

    def groups(self, numbers: Sequence[int], rollouts: int) -> list[Group]:
        """Groups `numbers`, each of so many rollouts by the policy as it is now."""
        ...


class Simulator:
    """The environment of a project's world. `items` scenarios come up again and again where there are to be only so many;
    `variant_share` of the groups are on a variant of the harness."""

    def __init__(
        self,
        setting: Setting,
        *,
        judges: BundleSource,
        backend: Backend,
        reward: Reward,
        items: int | None = None,
        variant_share: float = 0.0,
        talk: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._setting = setting
        self._judges = judges
        self._backend = backend
        self._reward = reward
        self._items = items
        self._variant_share = variant_share
        self._talk = talk

    def groups(self, numbers: Sequence[int], rollouts: int) -> list[Group]:
        """Carry out groups `numbers`, all their rollouts at once. HarnessctlError of the first that cannot be."""
        items = [self.item(number) for number in numbers]
        try:
            return asyncio.run(self._play(numbers, items, rollouts))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed

    def item(self, number: int) -> Item:
        """The scenario and the harness of group `number`."""
        place = number if self._items is None else number % self._items
        scenario = self._setting.scenario(place)
        if Stream("rl-variant", self._setting.config.seed, number).chance(self._variant_share):
            needs = scenario.gold.needs if scenario.gold is not None else Needs()
            for attempt in range(TRIES):
                try:
                    variant = self._setting.variant(number * TRIES + attempt, needs)
                except LawBroken as error:
                    self._talk(f"group {number}: a variant was refused: {error.message}")
                    continue
                return Item(number, scenario, variant.bundle, variant.variation)
        return Item(number, scenario, self._setting.bundle)

    async def _play(self, numbers: Sequence[int], items: Sequence[Item], rollouts: int) -> list[Group]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._backend.close)
            model = await self._backend.open()
            played = Rollouts(self._setting, judges=self._judges, model=model, faults=self._faults())
            stack.push_async_callback(played.aclose)
            # All places are taken before the first rollout begins, so that who answers with whom does not hang on time.
            places = [[self._backend.place() for _ in range(rollouts)] for _ in numbers]
            async with asyncio.TaskGroup() as tasks:
                waiting = [
                    [
                        tasks.create_task(self._one(played, named(item, f"{number}.{which}"), place))
                        for which, place in enumerate(row)
                    ]
                    for number, item, row in zip(numbers, items, places, strict=True)
                ]
        return [
            Group(number, None if item.variation is None else item.variation.number, [task.result() for task in row])
            for number, item, row in zip(numbers, items, waiting, strict=True)
        ]

    async def _one(self, played: Rollouts, item: Item, place: AbstractAsyncContextManager[object]) -> Rollout:
        async with place:
            trajectory, score = await played.play(item)
        return Rollout(trajectory, await self._reward.grade(item, trajectory, score))

    def _faults(self) -> FaultSource | None:
        simulation, config = self._setting.world.spec.simulation, self._setting.config
        if simulation is None:
            return None
        return SameFaults(Faults(config.faults.over(simulation.faults), seed=config.seed))
