"""What `harnessctl world` comes to, and how it is shown."""

from __future__ import annotations

from collections import Counter

import msgspec

from harnessctl.cli import output
from harnessctl.errors import Faults
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.checking import Unreached
from harnessctl.simulate.families import load_families
from harnessctl.simulate.imports import LogImport
from harnessctl.simulate.modes import MODES
from harnessctl.simulate.world import LiveWorld


class IntentShare(msgspec.Struct, kw_only=True):
    """An intent of a world's mix: its share, divided by the sum of all, and its families by harness."""

    share: float
    families: dict[str, int]


class Built(msgspec.Struct, kw_only=True):
    """What a world holds. `families` is {harness: {language: families that speak it}}."""

    world: str
    version: str
    digest: str
    tables: dict[str, int]
    mutable: list[str]
    faq: str | None = None
    intents: dict[str, IntentShare] = {}
    families: dict[str, dict[str, int]] = {}
    faults: dict[str, float] = {}
    modes: dict[str, float] = {}
    user: str | None = None

    def show(self) -> None:
        """The tables of the command."""
        rows = [(name, str(count), "yes" if name in self.mutable else "") for name, count in self.tables.items()]
        output.table(("table", "rows", "mutable"), rows)
        if self.intents:
            harnesses = sorted(self.families)
            shares = [
                (name, f"{intent.share:.1%}", *(str(intent.families.get(harness, 0)) for harness in harnesses))
                for name, intent in self.intents.items()
            ]
            output.table(("intent", "share", *(f"families: {harness}" for harness in harnesses)), shares)
            for harness, languages in self.families.items():
                spoken = ", ".join(f"{language} {count}" for language, count in sorted(languages.items()))
                output.data(f"{harness}: families by language: {spoken}")
            for what, rates in (("modes", self.modes), ("faults", self.faults)):
                output.data(f"{what}: " + (", ".join(f"{name} {rate:g}" for name, rate in rates.items()) or "none"))
        output.data(f"{self.world} {self.version}  digest {self.digest[:12]}  FAQ {self.faq or 'none'}")


class Sampled(msgspec.Struct, kw_only=True):
    """What `world sample` came to. With user=llm: messages in other words, those that kept their script, and wordings that
    were refused, by what was wrong with them."""

    scenarios: int
    seed: int
    out: str | None = None
    reworded: int = 0
    script: int = 0
    refused: dict[str, int] = {}


class Checked(msgspec.Struct, kw_only=True):
    """What `world check` came to."""

    scenarios: int
    families: int
    unreached: list[Unreached]

    @property
    def code(self) -> int:
        """0 when the oracle completes every scenario."""
        return 1 if self.unreached else 0

    def show(self) -> None:
        """The table of what was not reached, and the counts."""
        if self.unreached:
            rows = [(u.scenario, u.family, u.what, u.by, u.reason) for u in self.unreached]
            output.table(("scenario", "family", "what", "by", "reason"), rows)
        output.talk(
            f"{output.plural(self.scenarios, 'scenario')}, {self.families} {'family' if self.families == 1 else 'families'}:"
            f" {len({u.scenario for u in self.unreached})} not reached"
        )


class Imported(msgspec.Struct, kw_only=True):
    """What `world import` came to; the scenarios themselves only where they were not written to a file."""

    report: LogImport
    out: str | None = None
    scenarios: list[Scenario] | None = None

    @property
    def code(self) -> int:
        """0 when something was taken and nothing refused."""
        return 0 if self.report.taken and not self.report.refused else 1


def describe(world: LiveWorld) -> Built:
    """What `world` holds. FaultsError for what is wrong in its families."""
    spec, simulation = world.spec, world.spec.simulation
    found = Built(
        world=spec.name,
        version=spec.version,
        digest=world.digest,
        tables=world.rows,
        mutable=[name for name, table in spec.tables.items() if table.mutable],
        faq=spec.faq.table if spec.faq is not None else None,
    )
    if simulation is None:
        return found
    faults = Faults()
    families = load_families(world, faults)
    faults.raise_if_errors()
    total = sum(simulation.mix.values())
    for intent, share in simulation.mix.items():
        counted = Counter(family.harness for family in families if family.spec.intent == intent)
        found.intents[intent] = IntentShare(share=share / total, families=dict(sorted(counted.items())))
    for family in families:
        languages = found.families.setdefault(family.harness, {})
        for language in family.by_language:
            languages[language] = languages.get(language, 0) + 1
    found.faults.update(msgspec.structs.asdict(simulation.faults))
    found.modes.update({str(mode): float(getattr(simulation, mode)) for mode in MODES})
    found.user = simulation.user
    return found
