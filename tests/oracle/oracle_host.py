"""Scenarios of the shipped world, one of each family, and their runs on the shipped hosts and variants of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from statistics import mean

from harnessctl.bundle import Bundle
from harnessctl.manifests.specs.world import FaultRates
from harnessctl.records.scenario import GoldCall, Scenario
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.score.rules import RuleScorer
from harnessctl.simulate.clock import still_clock
from harnessctl.simulate.end_state import table_rows
from harnessctl.simulate.faults import Faults
from harnessctl.simulate.flaws import flaw
from harnessctl.simulate.oracle import Oracle
from harnessctl.simulate.plan import Planner
from harnessctl.simulate.scenarios import Scenarios
from tests.host.host_agent import bundle, world

HOSTS = ("live-stream", "mini")
SEED = 20


@cache
def opened(host: str) -> Scenarios:
    return Scenarios.open(world(), bundle(host))


@cache
def of_each_family(host: str, times: int = 1) -> list[Scenario]:
    """Scenarios of which every family has at least `times`, alone or as one half of a mixed one."""
    left = {family.spec.id: times for family in opened(host).families}
    found: list[Scenario] = []
    for scenario in opened(host).sample(SEED, 40_000):
        wanted = [name for name in scenario.family.split("+") if left[name]]
        for name in wanted:
            left[name] -= 1
        if wanted:
            found.append(scenario)
        if not any(left.values()):
            return found
    raise AssertionError(f"families that are hardly ever drawn: {[name for name, n in left.items() if n]}")


def complete(scenarios: Sequence[Scenario], host: str) -> None:
    """Fill the prelude in, as an evaluation does."""
    planner = Planner(bundle(host).state)
    for scenario in scenarios:
        steps = planner.plan(scenario).steps
        scenario.gold.prelude = [GoldCall(tool=s.tool, arguments=s.arguments) for s in steps if s.why == "prelude"]


def carry_out(
    scenarios: Sequence[Scenario], host: str, *, flawed: str | None = None, rates: FaultRates | None = None,
    harness: Bundle | None = None,
) -> list[tuple[Trajectory, Score]]:  # fmt: skip
    made = harness or bundle(host)
    known = {s.request.id: s for s in scenarios}
    scorer = RuleScorer([tool.name for tool in made.state.tools if tool.effect == "write"])

    async def run() -> list[tuple[Trajectory, Score]]:
        oracle = Oracle(made, known.__getitem__, flaw=flaw(flawed) if flawed else None)
        faults = Faults(rates, seed=3) if rates is not None else None
        out = []
        async with await Agent.open(made, oracle, world=world(), clock=still_clock(), faults=faults, env={}) as agent:
            for scenario in scenarios:
                with world().sandbox() as sandbox:
                    record = await agent.run(scenario.request, world=sandbox)
                    after = table_rows(sandbox, scenario.gold.end_state)
                out.append((record, scorer.score(record, scenario, after=after)))
        return out

    return asyncio.run(run())


def means(scored: Sequence[tuple[Trajectory, Score]]) -> dict[str, float]:
    return {d: mean(getattr(score, d) for _, score in scored) for d in DIMENSIONS}
