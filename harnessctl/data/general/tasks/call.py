"""Call: call the tool that a wish is about, with the arguments that the wish says, and answer from the result."""

from __future__ import annotations

from harnessctl.data.general.dialogue import Dialogue
from harnessctl.data.general.item import GeneralItem
from harnessctl.data.general.listing import framed
from harnessctl.data.general.source import Source
from harnessctl.data.general.tools import make_result, make_tools, wished

#: Most tools of one request.
MOST = 6


class Calling:
    """Two or three wishes to tools; the answer is the value of the result that the prompt names."""

    name = "call"
    share = 3.0

    def item(self, source: Source) -> GeneralItem:
        """An item."""
        chance = source.chance
        tools = make_tools(source, source.matters(source.count(most=MOST)))
        key = source.names.one(joiner="_")
        rule = chance.choice(("Call a tool, then say the `{}` of its result.", "Use a tool; answer with its `{}`."))
        dialogue = Dialogue(framed(source, rule.format(key)))
        for _ in range(chance.randint(2, 3)):
            wish, call = wished(source, chance.choice(tools))
            result = make_result(source, key)
            dialogue.ask(wish)
            dialogue.call([call])
            dialogue.results([result])
            dialogue.answer(str(result[key]))
        return dialogue.item(self.name, [tool.told for tool in tools])


TASK = Calling()
