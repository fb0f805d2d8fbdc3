"""Prompt items: scenarios with further instructions in the prompt, and the rubrics ACQ, FI and TCO [4.2, C.3].

The instructions stand in a block of their own behind the system's: on the reply (one, two or three of other categories, by
level) and, where a tool is due, on the order of calls. An item is taken when these hold:

    oracle misses it         the oracle, through the real agent with its hooks, passes every rubric and has every score: what
                             is asked goes together with gold, the limits and the rules of the harness
    hook objects             no hook sent one of its replies back: the instructions contradict none
    no instruction fits      there are instructions enough that a right reply can keep to, and that most do not by themselves
    rubric cannot fail       FI fails on the plain reply, TCO where the calls are made the other way round or not at all,
                             ACQ on small talk in the form that is asked
"""

from __future__ import annotations

from msgspec.structs import replace

from harnessctl.augment.stream import Stream
from harnessctl.bundle.set_item import SetItem
from harnessctl.bundle.state import Block, Rule
from harnessctl.bundle.text import render_text
from harnessctl.bundle.variation import Changes
from harnessctl.evaluate.building.instructions import Given, chosen
from harnessctl.evaluate.building.making import Refused
from harnessctl.evaluate.building.near import LEVELS, level_of
from harnessctl.evaluate.building.orders import Order, order_for
from harnessctl.evaluate.building.probe import Probe, shortfall
from harnessctl.evaluate.building.subject import addresses, small_talk
from harnessctl.evaluate.setting import Setting
from harnessctl.records.scenario import Scenario
from harnessctl.records.task import Rubric, Task
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.rubrics import Verdicts
from harnessctl.simulate.gold_checks import REPLY_LIMIT
from harnessctl.simulate.obeying import obeyed

NAME = "prompt-robust"
VERSION = "1.0.0"
BLOCK = "further-instructions"
_HEADINGS = {"en": "## For this reply", "zh": "## 这次回复的要求"}


class PromptItems:
    """A building.making.Maker."""

    name = NAME

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._probe = Probe(setting)
        limit = setting.bundle.state.limits.get(REPLY_LIMIT)
        self._most = None if limit is None else limit.value

    def scenario(self, number: int) -> Scenario:
        """Scenario `number` of the seed's stream."""
        return self._setting.scenario(number)

    def bars(self, key: str) -> bool:
        """None: the set has no other split."""
        return False

    async def make(self, scenario: Scenario, number: int) -> SetItem | Refused:
        """The item, or why there is none."""
        gold = scenario.gold
        if gold is None or gold.stop != "replied" or not gold.replies:
            return Refused("no reply is due", is_apart=True)
        subject = addresses(scenario)
        if subject is None:
            return Refused("rubric cannot fail")
        seed = self._setting.config.seed
        level = level_of(NAME, seed, number)
        stream = Stream(NAME, seed, number)
        given = chosen(gold, scenario.language, LEVELS.index(level) + 1, self._most, stream)
        if given is None:
            return Refused("no instruction fits")
        order = order_for(scenario, self._setting.planner, stream)
        rubrics: list[Rubric] = [subject, *(one.rubric for one in given), *([order.rubric] if order else [])]
        block = _block(given, order, scenario.language)
        task = Task(set=NAME, level=level, rubrics=rubrics, instructions=[_shown(rule) for rule in block.items])
        if order is not None and order.extra is not None:
            gold = replace(gold, optional=[*gold.optional, order.extra])
        asked = replace(scenario, gold=gold, task=task)
        changes = Changes(added_blocks=[block])
        bundle, variation = self._probe.varied(changes, set_name=NAME, version=VERSION, seed=seed, number=number)
        trajectory, score = await self._probe.play(asked, bundle, variation)
        if shortfall(score):
            return Refused("oracle misses it")
        if _sent_back(trajectory):
            return Refused("hook objects")
        if not _can_fail(trajectory, asked, task):
            return Refused("rubric cannot fail")
        return SetItem(set=NAME, scenario=asked, variation=variation)

    async def aclose(self) -> None:
        """Close the probe."""
        await self._probe.aclose()


def _block(given: list[Given], order: Order | None, language: str) -> Block:
    items = [Rule(id=one.template.id, text=[one.text], protected=True, verbatim=True) for one in given]
    if order is not None:
        items.append(order.rule())
    return Block(id=BLOCK, heading=[_HEADINGS["zh" if language.startswith("zh") else "en"]], items=items)


def _shown(rule: Rule) -> str:
    return render_text(rule.text, tools={}, skills={}, limits={})


def _sent_back(trajectory: Trajectory) -> bool:
    """Whether a hook sent a reply back."""
    return any(d.event == "stop" and d.decision not in ("pass", "observed", "warn") for d in trajectory.hooks)


def _can_fail(trajectory: Trajectory, scenario: Scenario, task: Task) -> bool:
    """Whether each rubric fails where it should."""
    gold = scenario.gold
    assert gold is not None
    plain = [Verdicts(replace(trajectory, reply=text), scenario, task).passed for text in gold.replies]
    instructions = [name for name in plain[0] if name.startswith("FI")]
    if any(2 * sum(found[name] for found in plain) > len(plain) for name in instructions):
        return False
    turned = replace(trajectory, tools=list(reversed(trajectory.tools)))
    none = replace(trajectory, tools=[])
    if any(Verdicts(other, scenario, task).passed.get("TCO", False) for other in (turned, none)):
        return False
    talk = (obeyed(text, task.rubrics, scenario.language) for text in small_talk(scenario.language))
    return not any(Verdicts(replace(trajectory, reply=text), scenario, task).passed["ACQ"] for text in talk)
