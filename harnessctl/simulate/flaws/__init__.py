"""Flaws: ways of doing one thing wrong, each of which makes a degraded oracle; what scores are held against.

A flaw is a module of this package with `FLAW`, found without a list. Over a set of scenarios, `lowers` are the dimensions
(and, over a built set, the metrics of rubrics) whose mean must fall against that of the oracle itself; those of `spares` must stay where they were; what is in neither
may fall with the others, as far as hooks or the tables make it.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState
from harnessctl.errors import UsageError
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.plan import Plan, Planner, Step
from harnessctl.simulate.reading import Turn


@dataclass(slots=True, frozen=True)
class Saying:
    """A reply about to be said: `text`, and all that it may be bent by."""

    text: str
    scenario: Scenario
    turn: Turn
    state: HarnessState
    stream: Stream


@dataclass(slots=True, frozen=True)
class Flaw:
    """One flaw. `plan` bends what is done, `reply` what is said (each time, so that it insists), and `speaks_canonical`
    writes canonical names whatever the harness shows. `spares` null: all that it does not lower.

    `ignores` are metrics of rubrics (FI, TCO) whose instructions are not followed. `only_variants`: it shows on renamed
    harnesses alone; `only_tasks`: on items of built sets alone, which have distractors, instructions or rubrics.
    """

    name: str
    lowers: frozenset[str]
    spares: frozenset[str] | None = None
    plan: Callable[[Plan, Scenario, Planner, Stream], Plan] | None = None
    reply: Callable[[Saying], str] | None = None
    speaks_canonical: bool = False
    ignores: frozenset[str] = frozenset()
    only_variants: bool = False
    only_tasks: bool = False

    def expected(self, dimension: str) -> str:
        """`falls`, `stays` or `may fall`: the cell of the expected matrix, for a dimension or a metric of rubrics."""
        if dimension in self.lowers:
            return "falls"
        return "stays" if self.spares is None or dimension in self.spares else "may fall"


@functools.cache
def flaws() -> dict[str, Flaw]:
    """Every flaw by its name, in the order of names."""
    found = [importlib.import_module(m.name).FLAW for m in pkgutil.iter_modules(__path__, f"{__name__}.")]
    return {flaw.name: flaw for flaw in sorted(found, key=lambda flaw: flaw.name)}


def flaw(name: str) -> Flaw:
    """The flaw of a name; UsageError lists them."""
    if name not in flaws():
        raise UsageError(f"no flaw {name!r}", hint=f"flaws: {', '.join(flaws())}")
    return flaws()[name]


def other_calls(wrong: Step, scenario: Scenario, planner: Planner) -> list[Step]:
    """Look-ups of other tools than gold's that can be made in the place of one: arguments it has, or the viewer's words.

    Those by which the harness chooses where the reply goes are left out: the flaw is to show in the calls.
    """
    gold = scenario.gold
    assert gold is not None
    ways = (gold.calls, gold.optional, gold.prelude, *gold.alternatives)
    named = {call.tool for way in ways for call in way}
    routes = f"{planner.state.private_when or ''} {planner.state.silent_when or ''}"
    words = scenario.request.viewer_messages()[0].text.strip()
    found: list[Step] = []
    for tool in planner.tools.values():
        if tool.name in named or tool.effect == "write" or tool.final is not None or tool.name == planner.load_skill:
            continue
        if any(f"'{name}'" in routes or f'"{name}"' in routes for name in (tool.name, *tool.tags)):
            continue
        arguments = {
            name: value
            for name in tool.parameters.get("required", ())
            if (value := wrong.arguments.get(name, gold.known.get(name, words))) is not None
        }
        if not planner.filling.fault(tool.name, arguments):
            found.append(Step(tool.name, arguments))
    return found


def needless_calls(scenario: Scenario, planner: Planner) -> list[Step]:
    """Look-ups that nothing asks for."""
    return other_calls(Step("", {}), scenario, planner)
