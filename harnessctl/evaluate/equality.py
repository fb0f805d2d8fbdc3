"""Equality: law g, that an agent which follows its harness scores the same on a variant, and what a memory of names may
score.

Law g holds for operators whose `keeps_difficulty` says so: an envelope without the others is made, each scenario is
played by the oracle on the parent and on its variant, and both scores are laid side by side. A policy that has learnt the
parent's names by heart is right only where the names that an item takes are still the old ones: `allowed` says how much
it may score at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from harnessctl.augment.operator import Operator
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.variation import Changes, Variation
from harnessctl.evaluate.items import Item
from harnessctl.evaluate.rollouts import Rollouts
from harnessctl.evaluate.setting import Setting
from harnessctl.manifests.specs.envelope import Envelope
from harnessctl.records.scenario import GoldCall, Needs, Scenario
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.score.calls import LOAD_SKILL, plans


@dataclass(slots=True, frozen=True)
class Pair:
    """One scenario on the parent and on a variant of it."""

    scenario: Scenario
    variation: Variation
    parent: Score
    variant: Score

    @property
    def is_equal(self) -> bool:
        """Whether every score is the same."""
        return all(getattr(self.parent, name) == getattr(self.variant, name) for name in DIMENSIONS)


def keeping_difficulty(envelope: Envelope, operators: Mapping[str, Operator]) -> Envelope:
    """The envelope without the operators that may make a task harder."""
    kept = {name: settings for name, settings in envelope.operators.items() if operators[name].keeps_difficulty}
    return msgspec.structs.replace(envelope, operators=kept)


async def pairs(setting: Setting, rollouts: Rollouts, numbers: Sequence[int]) -> list[Pair]:
    """Each scenario carried out on the parent and on variant `number` of the setting's envelope, made for its needs."""
    found: list[Pair] = []
    for number in numbers:
        scenario = setting.scenario(number)
        needs = scenario.gold.needs if scenario.gold is not None else Needs()
        made = setting.variant(number, needs)
        parent = await rollouts.score(Item(number, scenario, setting.bundle))
        variant = await rollouts.score(Item(number, scenario, made.bundle, made.variation))
        found.append(Pair(scenario, made.variation, parent, variant))
    return found


def mean(scores: Sequence[Score]) -> float:
    """The mean AVG of scores that have one; 0 where none has."""
    values = [score.average for score in scores if score.average is not None]
    return sum(values) / len(values) if values else 0.0


def allowed(scenario: Scenario, changes: Changes, state: HarnessState) -> float:
    """The most AVG that a policy can have which calls everything by the parent's names.

    1 where nothing that the item takes was renamed. Where a skill of it was, or the tool that loads skills, and the harness
    wants a reply skill, nothing can be said: 0. Where only tools were, what is left is to say so: right, and of no use: 0.5.
    """
    gold = scenario.gold
    if gold is None:
        return 1.0
    tools_renamed = all(_is_renamed([*gold.prelude, *calls], changes) for calls in plans(gold))
    skills_renamed = bool(gold.skills) and (
        any(skill in changes.skills for skill in gold.skills) or _is_renamed([GoldCall(tool=LOAD_SKILL)], changes)
    )
    if skills_renamed and state.require_skill == "reply" and gold.stop == "replied":
        return 0.0
    return 0.5 if tools_renamed or skills_renamed else 1.0


def _is_renamed(calls: Sequence[GoldCall], changes: Changes) -> bool:
    return any(
        call.tool in changes.tools or not changes.parameters.get(call.tool, {}).keys().isdisjoint(call.arguments)
        for call in calls
    )
