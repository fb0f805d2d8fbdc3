"""Scenarios: requests with their gold, drawn from the families of a world at the shares of its mix [3.3, Table 1].

What always holds: a scenario depends on (seed, number), the families and the world's tables alone, never on what was
drawn before; its gold fits the harness. How one is drawn: the intent by the mix (shares divided by their sum), the modes
by their rates, a family of the intent by weight, one of its languages (all equally likely), one of its rows in it, a
wording. A mode that a family cannot have does not come: see `modes`.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from harnessctl.augment.stream import Stream
from harnessctl.bundle.files import Bundle
from harnessctl.errors import Faults, UsageError
from harnessctl.manifests.specs.world import Simulation
from harnessctl.records.comment import CommentInput
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.families import LoadedFamily, load_families
from harnessctl.simulate.gold_checks import REPLY_LIMIT, GoldChecks
from harnessctl.simulate.modes import Drawn, Modes, Surroundings
from harnessctl.simulate.needs import Completion
from harnessctl.simulate.plan import Planner
from harnessctl.simulate.slots import as_text
from harnessctl.simulate.user import UserVoice
from harnessctl.simulate.world import LiveWorld


class _Weighted:
    """Families of one intent, to be drawn by weight."""

    def __init__(self, families: Sequence[LoadedFamily]) -> None:
        self._families = families
        self._sums = list(accumulate(family.spec.weight for family in families))

    def draw(self, stream: Stream) -> LoadedFamily:
        return self._families[min(bisect(self._sums, stream.unit() * self._sums[-1]), len(self._families) - 1)]


class Scenarios:
    """Draws scenarios for one harness. Rows were fetched once; drawing reads no table.

    `user` puts viewers' messages in other words; without one they are as the families write them.
    """

    user: UserVoice | None = None

    def __init__(self, world: LiveWorld, bundle: Bundle, simulation: Simulation, families: list[LoadedFamily]) -> None:
        self.harness = bundle.name
        self.world_digest = world.digest
        self.families = families
        self.simulation = simulation
        served = [intent for intent, share in simulation.mix.items() if share > 0]
        self._intents = served
        self._sums = list(accumulate(simulation.mix[intent] for intent in served))
        self._all = {i: _Weighted([f for f in families if f.spec.intent == i]) for i in served}
        halves = {i: [f for f in families if f.spec.intent == i and f.spec.combine] for i in served}
        self._halves = {intent: _Weighted(found) for intent, found in halves.items() if found}
        self._complete = Completion(bundle.state)
        limit = bundle.state.limits.get(REPLY_LIMIT)
        inputs: dict[str, Any] = bundle.state.prompt.inputs.get("properties", {})
        self._modes = Modes(
            simulation,
            Surroundings.read(world, simulation.chatter),
            [family for family in families if family.spec.combine],
            inputs=frozenset(inputs),
            longest=limit.value if limit is not None else None,
        )

    @classmethod
    def open(cls, world: LiveWorld, bundle: Bundle) -> Scenarios:
        """The scenarios of a world for a harness, everything checked.

        FaultsError names what is wrong in the families; UsageError says that the world has none for the harness.
        """
        simulation = world.spec.simulation
        if simulation is None:
            raise UsageError(
                f"the world {world.name} draws no scenarios: its manifest has no `simulation`",
                hint="`harnessctl docs world` says what it holds",
            )
        faults = Faults()
        found = load_families(world, faults)
        families = [family for family in found if family.harness == bundle.name]
        if not families:
            faults.raise_if_errors()
            known = ", ".join(dict.fromkeys(family.harness for family in found)) or "none"
            raise UsageError(
                f"the world {world.name} has no families for the harness {bundle.name}",
                hint=f"it has families for: {known}; name a file with `harness: {bundle.name}` under `simulation`",
            )
        check_families(world, simulation, bundle, families, faults)
        faults.raise_if_errors()
        return cls(world, bundle, simulation, families)

    @property
    def planner(self) -> Planner:
        """What completes gold: its last plan is that of the scenario drawn last."""
        return self._complete.planner

    def draw(self, seed: int, number: int) -> Scenario:
        """Scenario `number` (from 0) of a seed, in the words of `user` where there is one."""
        scenario = self.drawn(seed, number)
        return scenario if self.user is None else self.user.reworded(scenario)

    def drawn(self, seed: int, number: int) -> Scenario:
        """Scenario `number` (from 0) of a seed, as the families write it."""
        stream = Stream("scenario", seed, number)
        intent = self._intents[min(bisect(self._sums, stream.unit() * self._sums[-1]), len(self._intents) - 1)]
        wanted = self._modes.drawn(stream)
        halves = self._halves.get(intent) if "mixed" in wanted else None
        family = (halves or self._all[intent]).draw(stream)
        language = stream.choice(list(family.by_language))
        row = stream.choice(family.by_language[language])
        drawn = Drawn(family, language, row, family.gold_for(language, row))
        message = stream.choice(family.messages[language]).fill(row)
        scene = self._modes.apply(drawn, message, wanted, Stream("modes", seed, number))
        name = f"{self.harness}-{seed}-{number:06d}"
        scenario = Scenario(
            id=name,
            request=CommentInput(
                id=name, messages=scene.messages, room=as_text(row.get("room")), context=scene.context
            ),
            harness=self.harness,
            intent=intent,
            family=scene.family,
            language=language,
            world=self.world_digest,
            seed=seed,
            mode=scene.mode,
            source="family",
            gold=scene.gold,
        )
        self._complete(scenario, scene.gold)
        return scenario

    def sample(self, seed: int, n: int, *, start: int = 0) -> Iterator[Scenario]:
        """Scenarios `start` to `start + n - 1` of a seed."""
        return (self.draw(seed, number) for number in range(start, start + n))

    def gold_skills(self) -> dict[str, list[str]]:
        """Each skill that gold loads, with the families that need it."""
        out: dict[str, list[str]] = {}
        for family in self.families:
            for skill in family.spec.gold.skills:
                out.setdefault(skill, []).append(family.spec.id)
        return out


def check_families(
    world: LiveWorld, simulation: Simulation, bundle: Bundle, families: Sequence[LoadedFamily], faults: Faults
) -> None:
    """Add a fault for each thing in which gold does not fit the harness."""
    rates = simulation.faults
    checks = GoldChecks(
        bundle.state,
        world.columns,
        [name for name, table in world.spec.tables.items() if table.mutable],
        can_fail=any((rates.timeout, rates.malformed, rates.denied, rates.stale)),
    )
    broken = {(fault.path, fault.line, fault.col) for fault in faults.errors}
    for family in families:
        if family.by_language and not _touched(family, broken):
            checks.check(family, faults)


def _touched(family: LoadedFamily, broken: set[tuple[str, int, int]]) -> bool:
    """Whether a fault was found within the family; its gold is then not looked at, which could only repeat it."""
    first, _ = family.document.place(*family.at)
    (name, index) = family.at
    after, _ = family.document.place(name, int(index) + 1)
    last = after if after > first else 10**9
    return any(path == family.document.path and first <= line < last for path, line, _ in broken)
