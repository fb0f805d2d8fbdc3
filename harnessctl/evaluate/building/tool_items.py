"""Tool items: scenarios in which a tool is due, with distractors beside it, and the rubrics ACQ, RC and TC [4.2, C.3].

An item is taken when these hold; what does not is rejected under the reason that is given here:

    oracle misses it         the oracle, through the real agent, passes every rubric and has every score
    told without the tool    neither what the request itself tells, nor any fallback of gold, nor small talk, says a fact that
                             a tool is to tell
    rubric cannot fail       without the due call TC fails; small talk fails ACQ
    distractor answers       no twin of a due tool tells a fact that was asked for
"""

from __future__ import annotations

import json

from msgspec.structs import replace

from harnessctl.augment.parent import Parent
from harnessctl.augment.stream import Stream
from harnessctl.bundle.set_item import SetItem
from harnessctl.evaluate.building.making import Refused
from harnessctl.evaluate.building.near import distracted, level_of
from harnessctl.evaluate.building.probe import Probe, shortfall
from harnessctl.evaluate.building.subject import addresses, small_talk
from harnessctl.evaluate.setting import Setting
from harnessctl.records.scenario import Fact, Gold, Scenario
from harnessctl.records.task import Called, Rubric, Says, Task
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.facts import is_said
from harnessctl.score.phrases import Said
from harnessctl.score.rubrics import Verdicts
from harnessctl.simulate.situations import due_tools

NAME = "tool-robust"
VERSION = "1.0.0"


class ToolItems:
    """A building.making.Maker."""

    name = NAME

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._probe = Probe(setting)
        self._words = Parent(setting.bundle.state).words

    def scenario(self, number: int) -> Scenario:
        """Scenario `number` of the seed's stream."""
        return self._setting.scenario(number)

    def bars(self, key: str) -> bool:
        """None: the set has no other split."""
        return False

    async def make(self, scenario: Scenario, number: int) -> SetItem | Refused:
        """The item, or why there is none."""
        gold = scenario.gold
        if gold is None or gold.stop != "replied":
            return Refused("no reply is due", is_apart=True)
        if not gold.calls or any(not plan for plan in gold.alternatives):
            return Refused("no tool is due", is_apart=True)
        facts = [fact for fact in gold.facts if fact.source is not None]
        if not facts:
            return Refused("no tool tells what is due", is_apart=True)
        subject = addresses(scenario)
        if subject is None:
            return Refused("rubric cannot fail")
        if any(_says_any(text, facts) for text in (*gold.fallbacks, *small_talk(scenario.language))):
            return Refused("told without the tool")
        seed = self._setting.config.seed
        stream = Stream(NAME, seed, number)
        level = level_of(NAME, seed, number)
        found = distracted(
            self._setting.bundle.state,
            self._words,
            gold.calls,
            level,
            scenario.language,
            lambda text: _says_any(text, facts),
            stream,
        )
        if found is None:
            return Refused("distractor answers")
        changes, distractors = found
        rubrics: list[Rubric] = [subject, *_says(facts), *_called(gold)]
        task = Task(set=NAME, level=level, rubrics=rubrics, distractors=distractors)
        asked = replace(scenario, task=task)
        bundle, variation = self._probe.varied(changes, set_name=NAME, version=VERSION, seed=seed, number=number)
        trajectory, score = await self._probe.play(asked, bundle, variation)
        if shortfall(score):
            return Refused("oracle misses it")
        if _says_any(_told(trajectory), [fact for fact in facts if _is_value(fact)]):
            return Refused("told without the tool")
        if not _can_fail(trajectory, asked, task):
            return Refused("rubric cannot fail")
        return SetItem(set=NAME, scenario=asked, variation=variation)

    async def aclose(self) -> None:
        """Close the probe."""
        await self._probe.aclose()


def _says(facts: list[Fact]) -> list[Says]:
    return [Says(id=_id("RC", n, len(facts)), any=fact.any, source=fact.source) for n, fact in enumerate(facts, 1)]


def _called(gold: Gold) -> list[Called]:
    """A rubric for each due call; one for all where other calls may stand in their place."""
    if gold.alternatives:
        return [Called(id="TC", plans=[gold.calls, *gold.alternatives])]
    return [Called(id=_id("TC", n, len(gold.calls)), plans=[[call]]) for n, call in enumerate(gold.calls, 1)]


def _id(metric: str, number: int, of: int) -> str:
    return metric if of == 1 else f"{metric}-{number}"


def _says_any(text: str, facts: list[Fact]) -> bool:
    said = Said(text)
    return any(is_said(fact, said) for fact in facts)


def _is_value(fact: Fact) -> bool:
    """Whether a fact is a value, and not words or a bare number that may stand in any text (`in stock`, `next`, `4`)."""
    return all(len(text) > 12 or (any(map(str.isdigit, text)) and not text.isdigit()) for text in fact.any)


def _told(trajectory: Trajectory) -> str:
    """What the request tells before any tool is called."""
    asked = [message.get("text", "") for message in trajectory.request.get("messages") or ()]
    shown = [message["content"] or "" for message in trajectory.messages[:2] if message["role"] in ("system", "user")]
    return "\n".join([*asked, trajectory.request.get("text") or "", *shown]) or json.dumps(trajectory.context)


def _can_fail(trajectory: Trajectory, scenario: Scenario, task: Task) -> bool:
    """Whether TC fails without the due calls, RC without what they tell, and ACQ where something else is spoken of."""
    due = due_tools(scenario)
    gold = scenario.gold
    assert gold is not None
    others = [call for call in trajectory.tools if call.name not in due]
    empty = (gold.fallbacks or small_talk(scenario.language))[0]
    without = Verdicts(replace(trajectory, tools=others, reply=empty), scenario, task).passed
    if any(passed for name, passed in without.items() if name.startswith(("TC", "RC"))):
        return False
    elsewhere = (replace(trajectory, reply=text) for text in small_talk(scenario.language))
    return not any(Verdicts(other, scenario, task).passed["ACQ"] for other in elsewhere)
