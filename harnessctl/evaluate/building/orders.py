"""Orders: in which order an item's prompt wants calls to be made, and the rubric TCO that checks it [4.2, C.3].

| order        | the prompt says                              | where                                          |
|--------------|----------------------------------------------|------------------------------------------------|
| gold's own   | call A before B                              | gold calls two tools or more                   |
| look first   | call E before A                              | another look-up than gold's can be made        |
| look after   | after A call E as well, and then reply       | the same                                       |
| skill apart  | load the skill, then call A                  | gold loads a skill                             |

What always holds: an order has two tools at least, one of them due; an extra look-up becomes an optional call of gold, so
that making it costs nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import Rule
from harnessctl.bundle.text import Ref, Text
from harnessctl.records.gold_call import GoldCall
from harnessctl.records.scenario import Scenario
from harnessctl.records.task import Ordered
from harnessctl.score.calls import LOAD_SKILL
from harnessctl.simulate.flaws import needless_calls
from harnessctl.simulate.plan import Planner

_SAYS = {
    "en": {
        "before": ("Call ", " before you call ", "."),
        "after": ("After ", " call ", " as well, and only then reply."),
        "skill": ("First load the skill with ", ", then call ", "."),
    },
    "zh": {
        "before": ("先调用", "，再调用", "。"),
        "after": ("调用", "之后还要调用", "，然后再回复。"),
        "skill": ("先用", "加载技能，再调用", "。"),
    },
}


@dataclass(slots=True, frozen=True)
class Order:
    """An order: what the prompt says, the rubric, and the look-up that gold has not."""

    text: Text
    rubric: Ordered
    extra: GoldCall | None = None

    def rule(self) -> Rule:
        """As an item of a prompt block."""
        return Rule(id="order", text=self.text, protected=True, verbatim=True)


def order_for(scenario: Scenario, planner: Planner, stream: Stream) -> Order | None:
    """An order that is drawn among those that a scenario can have; null where no call of gold is due."""
    gold = scenario.gold
    assert gold is not None
    if not gold.calls or any(not plan for plan in gold.alternatives):
        return None
    due = [call.tool for call in gold.calls if planner.tools[call.tool].final is None]
    if not due:
        return None
    says = _SAYS["zh" if scenario.language.startswith("zh") else "en"]
    found: list[Order] = []
    for first, second in itertools.pairwise(due):
        if first != second:
            found.append(_order(says["before"], first, second))
    extras = needless_calls(scenario, planner)
    if extras:
        extra = stream.choice(extras)
        call = GoldCall(tool=extra.tool, arguments=extra.arguments, compare=[])
        found.append(_order(says["before"], extra.tool, due[0], extra=call))
        found.append(_order(says["after"], due[-1], extra.tool, extra=call, last=True))
    if not found and gold.skills and planner.load_skill is not None:
        found.append(_order(says["skill"], planner.load_skill, due[0], loader=planner.load_skill))
    return stream.choice(found) if found else None


def _order(
    says: Sequence[str], first: str, second: str, *, extra: GoldCall | None = None, last: bool = False, loader: str = ""
) -> Order:
    text: Text = [says[0], Ref("tool", first), says[1], Ref("tool", second), says[2]]
    tools = [LOAD_SKILL if name == loader else name for name in (first, second)]
    return Order(text, Ordered(id="TCO", tools=tools, last=last), extra)
