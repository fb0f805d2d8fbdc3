"""Edit items: scenarios that show whether replies are natural, before and after an edit of the harness [5.6].

The paper samples 1,500 cases of real traffic, 500 for making the edits and 1,000 held out. Here they are scenarios of the
world at its shares, and of those in which a tool is due about two thirds meet a situation that provokes talk of what
one does not know: every due call times out, is malformed, is denied, or finds no data.

What always holds: the two splits have no scenario in common, neither by id nor by what is asked (a third of all that can be
asked is the dev split's, by hash), and no seed: not that of the draw, not that of a situation. An item is taken when the oracle's reply is right and natural, and so are all replies and
fallbacks of gold.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from harnessctl.augment.stream import Stream
from harnessctl.bundle.set_item import SetItem
from harnessctl.evaluate.building.making import Refused
from harnessctl.evaluate.building.probe import Probe, shortfall
from harnessctl.evaluate.setting import Setting
from harnessctl.records.scenario import Gold, Scenario
from harnessctl.records.task import Natural, Task
from harnessctl.score.naturalness import findings
from harnessctl.simulate.situations import KINDS

Split = Literal["dev", "test"]

#: Seeds of the splits: far from those that other sets are drawn with.
_FIRST_SEED = 70_000_000
#: The share of what can be asked that is the dev split's.
DEV_SHARE = 1 / 3
#: The share of scenarios with a due tool that meet a situation.
PROVOKED = 0.65


def seed_of(seed: int, split: Split) -> int:
    """The seed of a split."""
    return _FIRST_SEED + 2 * seed + (split == "test")


def split_of(seed: int, key: str) -> Split:
    """The split that a scenario is for, by what it asks (`making.content_key`)."""
    return "dev" if Stream("edit-split", seed, key).chance(DEV_SHARE) else "test"


class EditItems:
    """A building.making.Maker."""

    def __init__(self, setting: Setting, name: str, split: Split) -> None:
        self.name = name
        self._setting = setting
        self._split: Split = split
        self._seed = seed_of(setting.config.seed, split)
        self._probe = Probe(setting)

    def scenario(self, number: int) -> Scenario:
        """Scenario `number` of the split's stream."""
        return self._setting.drawn(self._seed, number)

    def bars(self, key: str) -> bool:
        """Whether it is the other split's."""
        return split_of(self._setting.config.seed, key) != self._split

    async def make(self, scenario: Scenario, number: int) -> SetItem | Refused:
        """The item, or why there is none."""
        gold = scenario.gold
        if gold is None or gold.stop != "replied":
            return Refused("no reply is due", is_apart=True)
        if any(findings(text, scenario.language) for text in (*gold.replies, *gold.fallbacks)):
            return Refused("gold is not natural")
        situation = self._situation(gold, number)
        task = Task(set=self.name, rubrics=[Natural(id="NAT")], situation=situation)
        asked = replace(scenario, task=task)
        _, score = await self._probe.play(asked, self._setting.bundle)
        if shortfall(score, ("accuracy", "effectiveness")):
            return Refused("oracle misses it")
        if situation and not score.faults:
            return Refused("situation does not arise")
        return SetItem(set=self.name, scenario=asked)

    async def aclose(self) -> None:
        """Close the probe."""
        await self._probe.aclose()

    def _situation(self, gold: Gold, number: int) -> Literal["", "timeout", "malformed", "denied", "missing"]:
        stream = Stream(self.name, self._seed, number)
        if not gold.calls or not gold.fallbacks or not stream.chance(PROVOKED):
            return ""
        return stream.choice(KINDS)
