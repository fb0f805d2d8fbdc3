"""Checking: whether the oracle gets through scenarios, so that what scores hold against a policy can be reached [3.3].

Each scenario is carried out for itself: its plan completed from the hooks' demands, played by the oracle through a real
agent in a sandbox of the world, without faults. What comes out is listed where it is not what gold says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Literal

import msgspec
import orjson

from harnessctl.bundle.files import Bundle
from harnessctl.records.scenario import Gold, Scenario
from harnessctl.records.trajectory import ToolCall, Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.score.end_state import unmet
from harnessctl.simulate.clock import still_clock
from harnessctl.simulate.end_state import table_rows
from harnessctl.simulate.oracle import Oracle
from harnessctl.simulate.plan import Plan, PlanBlocked, Planner, Step
from harnessctl.simulate.world import LiveWorld

What = Literal["plan", "call", "reply", "route", "end-state"]


class Unreached(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A scenario whose gold cannot be reached. `what` went wrong: no plan can be made, a call of gold did not succeed, the
    reply did not go out, or went another way, or the tables are not as gold has them. `by` names the hook, or the part
    of gold or of the harness, that stands in the way; `call` the call."""

    scenario: str
    family: str
    what: What
    by: str
    reason: str
    call: str = ""

    def render(self) -> str:
        """One line for a person."""
        call = f" {self.call}" if self.call else ""
        return f"{self.scenario} ({self.family}): {self.what}{call}: {self.by}: {self.reason}"


def check_scenarios(
    bundle: Bundle,
    world: LiveWorld,
    scenarios: Iterable[Scenario],
    *,
    seed: int = 0,
    on_done: Callable[[Scenario, Trajectory | None], None] | None = None,
) -> list[Unreached]:
    """Everything that the oracle cannot reach, in the order of the scenarios. `on_done` is told of each one, with its
    trajectory where there is one."""
    return asyncio.run(_check(bundle, world, scenarios, seed, on_done))


async def _check(
    bundle: Bundle,
    world: LiveWorld,
    scenarios: Iterable[Scenario],
    seed: int,
    on_done: Callable[[Scenario, Trajectory | None], None] | None,
) -> list[Unreached]:
    under_way: dict[str, Scenario] = {}
    oracle = Oracle(bundle, under_way.__getitem__, seed=seed)
    planner = Planner(bundle.state)
    found: list[Unreached] = []
    async with await Agent.open(bundle, oracle, world=world, clock=still_clock(), seed=seed) as agent:
        for scenario in scenarios:
            trajectory: Trajectory | None = None
            try:
                plan = planner.plan(scenario)
            except PlanBlocked as blocked:
                found.append(_blocked(scenario, blocked))
            else:
                under_way[scenario.request.id] = scenario
                with closing(world.sandbox()) as sandbox:
                    trajectory = await agent.run(scenario.request, world=sandbox)
                    found += _unreached(scenario, plan, trajectory, sandbox)
                del under_way[scenario.request.id]
            if on_done is not None:
                on_done(scenario, trajectory)
    return found


def _blocked(scenario: Scenario, blocked: PlanBlocked) -> Unreached:
    call = blocked.call
    return Unreached(
        scenario=scenario.id,
        family=scenario.family,
        what="plan",
        by=blocked.hook,
        reason=blocked.reason,
        call=f"{call.tool}({_shown(call.arguments)})" if call is not None else "",
    )


def _unreached(scenario: Scenario, plan: Plan, trajectory: Trajectory, world: LiveWorld) -> list[Unreached]:
    """What of one scenario was not reached; a call that failed explains what comes after it."""
    gold = scenario.gold
    assert gold is not None
    for step in plan.steps if _is_asked(trajectory) else ():
        made = [call for call in trajectory.tools if call.name == step.tool and call.arguments == step.arguments]
        failed = _failure(step, made, gold)
        if failed is not None:
            by, reason = failed
            return [
                Unreached(scenario=scenario.id, family=scenario.family, what="call", by=_hook_of(made, trajectory) or by,
                          reason=reason, call=f"{step.tool}({_shown(step.arguments)})")
            ]  # fmt: skip
    if trajectory.stop != gold.stop:
        by, reason = _why_not_said(trajectory)
        reason = f"it ended `{trajectory.stop}`, not `{gold.stop}`: {reason}"
        return [Unreached(scenario=scenario.id, family=scenario.family, what="reply", by=by, reason=reason)]
    out: list[Unreached] = []
    if trajectory.stop == "replied" and trajectory.reply not in (text.strip() for text in plan.replies):
        by, reason = _why_not_said(trajectory)
        out.append(
            Unreached(scenario=scenario.id, family=scenario.family, what="reply", by=by,
                      reason=f"no reply of gold went out, but {_quoted(trajectory.reply)}: {reason}")
        )  # fmt: skip
    if trajectory.stop == "replied" and trajectory.route != gold.route:
        out.append(
            Unreached(scenario=scenario.id, family=scenario.family, what="route", by="reply.route",
                      reason=f"the reply went out {trajectory.route}, not {gold.route}")
        )  # fmt: skip
    if gold.end_state:
        out += [
            Unreached(scenario=scenario.id, family=scenario.family, what="end-state", by="world", reason=reason)
            for reason in unmet(gold, table_rows(world, gold.end_state))
        ]
    return out


def _is_asked(trajectory: Trajectory) -> bool:
    """Whether the model had a say; an input hook may end a request before."""
    return bool(trajectory.calls)


def _failure(step: Step, made: list[ToolCall], gold: Gold) -> tuple[str, str] | None:
    """(what failed, why) of a planned call, or None. A call that is denied is right where gold rests nothing on it."""
    if not made:
        return "oracle", "it was never made"
    if any(call.status == "ok" for call in made):
        return None
    last = made[-1]
    rests = any(fact.source == step.tool for fact in gold.facts)
    if last.status == "denied" and step.why == "gold" and not rests and _is_last(step, gold):
        return None
    return f"tool:{last.status}", last.error or last.status


def _is_last(step: Step, gold: Gold) -> bool:
    """Whether gold makes no call after this one, and asks for no change."""
    last = gold.calls[-1] if gold.calls else None
    return last is not None and (last.tool, last.arguments) == (step.tool, step.arguments) and not gold.end_state


def _hook_of(made: list[ToolCall], trajectory: Trajectory) -> str:
    """The hook that blocked a call, or nothing."""
    if not made or made[-1].status != "blocked":
        return ""
    decided = [d for d in trajectory.hooks if d.tool == made[-1].name and d.decision in ("block", "retry", "error")]
    return decided[-1].hook if decided else ""


def _why_not_said(trajectory: Trajectory) -> tuple[str, str]:
    """(the hook that had the last word, its reason), or what the record holds."""
    decided = [
        d
        for d in trajectory.hooks
        if d.decision not in ("pass", "observed", "warn", "rewrite") and d.event != "post_tool"
    ]
    if decided:
        return decided[-1].hook, decided[-1].reason or decided[-1].error or decided[-1].decision
    return "run", trajectory.error or "no cause is recorded"


def _shown(arguments: dict[str, object]) -> str:
    return _cut(orjson.dumps(arguments).decode())


def _quoted(text: str) -> str:
    return _cut(repr(text))


def _cut(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."
