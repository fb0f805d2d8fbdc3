"""Rollouts: items carried out: an agent for each bundle, a sandbox of the world for each item, and the score.

What always holds: an item's outcome depends on the setting and its number alone, not on what was carried out before or
beside it; the end state is read before the sandbox is gone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from harnessctl.assembly import open_agent
from harnessctl.bundle.files import Bundle
from harnessctl.evaluate.cache import AnswerCache
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.items import Item, Items
from harnessctl.evaluate.outcome import Outcome, outcome_of
from harnessctl.evaluate.repeats import SameFaults
from harnessctl.evaluate.sets import set_named
from harnessctl.evaluate.setting import Setting
from harnessctl.policies import OracleSource, open_oracle, open_policy
from harnessctl.records.scenario import Scenario
from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.judge import BundleSource
from harnessctl.runtime.loop import loop_state
from harnessctl.runtime.protocols import FaultSource, Model
from harnessctl.runtime.surface import SurfaceView
from harnessctl.score.rules import RuleScorer
from harnessctl.score.scorer import Scorer, Tables
from harnessctl.simulate.clock import still_clock
from harnessctl.simulate.end_state import table_rows
from harnessctl.simulate.faults import Faults
from harnessctl.simulate.situations import Situations
from harnessctl.simulate.world import LiveWorld

#: Where answers are kept, in the project.
CACHE = "build/answers"


class Rollouts:
    """Carries out items of one suite. Belongs to one event loop; `aclose` closes agents and model.

    A `model` that is given answers in the place of the config's, and stays open. `wrap` is put around each model, the
    oracle of a bundle too. `faults` take the place of the world's and of items' situations; `items` and `config` those of
    the setting's own.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        judges: BundleSource,
        scorer: Scorer | None = None,
        model: Model | None = None,
        wrap: Callable[[Model], Model] | None = None,
        faults: FaultSource | None = None,
        items: Items | None = None,
        config: EvalConfig | None = None,
    ) -> None:
        config = config or setting.config
        self._config = config
        self._setting = setting
        self._judges = judges
        self._items = set_named(config.items).items(setting) if items is None else items
        self._scorer = scorer or RuleScorer(setting.writes, loader=setting.loader)
        self._running = config.running()
        self._clock = still_clock() if config.is_at_once else None
        simulation = setting.world.spec.simulation
        self._faults = faults
        if faults is None and simulation:
            drawn = Faults(config.faults.over(simulation.faults), seed=config.seed)
            self._faults = SameFaults(drawn) if config.repeats > 1 else drawn
        self._scenarios: dict[str, Scenario] = {}
        if faults is None:
            self._faults = Situations(self._scenarios, self._faults)
        self._cache = AnswerCache(setting.root / CACHE, setting) if config.cache else None
        self._is_given = model is not None
        self._wrap = wrap
        self._model = model
        if model is None and config.policy != "oracle":
            self._model = open_policy(config.policy, config.model, script=config.script)
        self._kept: dict[str, Agent] = {}
        self._sandboxes: list[LiveWorld] = []
        self._stack = AsyncExitStack()

    def item(self, number: int) -> Item:
        """Item `number`."""
        return self._items.item(number)

    async def carry_out(self, item: Item) -> Outcome:
        """Answer and score one item; where the config says so, an answer of an earlier run is taken."""
        found = None if self._cache is None else self._cache.find(item)
        trajectory, after = found or await self._run(item)
        if self._cache is not None and found is None:
            self._cache.keep(item, trajectory, after)
        score = self._score(item, trajectory, after)
        return outcome_of(item, trajectory, score, after, is_cached=found is not None)

    async def score(self, item: Item) -> Score:
        """Answer one item; the score alone."""
        trajectory, after = await self._run(item)
        return self._score(item, trajectory, after)

    async def play(self, item: Item) -> tuple[Trajectory, Score]:
        """Answer and score one item; what was done, and its score."""
        trajectory, after = await self._run(item)
        return trajectory, self._score(item, trajectory, after)

    async def _run(self, item: Item) -> tuple[Trajectory, Tables | None]:
        request = item.scenario.request
        self._scenarios[request.id] = item.scenario
        try:
            world = self._sandboxes.pop() if self._sandboxes else self._setting.world.sandbox()
            try:
                kept = self._kept.get(item.bundle.digest)
                if kept is not None:
                    trajectory = await kept.run(request, world=world)
                else:
                    async with self._agent(item.bundle) as agent:
                        trajectory = await agent.run(request, world=world)
                gold = item.scenario.gold
                after = table_rows(world, gold.end_state) if gold is not None and gold.end_state else None
            except BaseException:
                world.close()
                raise
            self._put_back(world, trajectory)
        finally:
            del self._scenarios[request.id]
        return trajectory, after

    def _put_back(self, world: LiveWorld, trajectory: Trajectory) -> None:
        """Keep a sandbox, in its first state again, for a later item; not where a tool may still be at work in it."""
        if trajectory.stop == "deadline" or any(c.status == "timeout" and c.fault is None for c in trajectory.tools):
            world.close()
        else:
            world.renew()
            self._sandboxes.append(world)

    def _score(self, item: Item, trajectory: Trajectory, after: Tables | None) -> Score:
        score = self._scorer.score(trajectory, item.scenario, variation=item.variation, after=after)
        score.repeat = item.repeat
        return score

    async def aclose(self) -> None:
        """Close what was opened."""
        while self._sandboxes:
            self._sandboxes.pop().close()
        await self._stack.aclose()
        if self._model is not None and not self._is_given:
            await self._model.aclose()

    @asynccontextmanager
    async def _agent(self, bundle: Bundle) -> AsyncGenerator[Agent]:
        """A new agent of a bundle: kept where bundles come up again, else closed behind the item."""
        if len(self._kept) < self._items.keep:
            agent = self._kept[bundle.digest] = await self._stack.enter_async_context(self._open(bundle))
            yield agent
        else:
            async with self._open(bundle) as agent:
                yield agent

    @asynccontextmanager
    async def _open(self, bundle: Bundle) -> AsyncGenerator[Agent]:
        surface = SurfaceView(loop_state(bundle, self._running.loop, self._running.limits.given()))
        model = self._model or self._oracle(bundle, surface)
        if self._wrap is not None:
            model = self._wrap(model)
        async with open_agent(
            bundle,
            self._running,
            world=self._setting.world,
            bundles=self._judges,
            model=model,
            clock=self._clock,
            faults=self._faults,
            surface=surface,
        ) as agent:
            yield agent

    def _oracle(self, bundle: Bundle, surface: SurfaceView) -> Model:
        config = self._config
        return open_oracle(
            OracleSource(
                bundle=bundle,
                scenarios=self._scenarios.__getitem__,
                seed=config.seed,
                flaw=config.flaw,
                flaw_rate=config.flaw_rate,
                loop=config.loop,
                clock=self._clock,
                planner=self._setting.planner if bundle is self._setting.bundle and config.loop == "harness" else None,
                surface=surface,
            )
        )
