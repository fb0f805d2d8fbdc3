"""Choice: call the one tool whose argument is an entry of a list, with the entry that a wish is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harnessctl.data.general.dialogue import Call, Dialogue
from harnessctl.data.general.item import GeneralItem
from harnessctl.data.general.listing import framed, make_listing
from harnessctl.data.general.source import Source
from harnessctl.data.general.tools import Parameter, function_tool, make_tools

#: What the tool that takes an entry is told to do.
DESCRIPTIONS = ("opens an entry", "loads one of the names", "gets a guide", "picks from the list", "reads a page")


class Choice:
    """Two or three wishes on one list; each answer is a call. Up to two tools that nobody needs stand beside it."""

    name = "choice"
    share = 2.0

    def item(self, source: Source) -> GeneralItem:
        """An item."""
        chance = source.chance
        listing = make_listing(source)
        name, argument = source.names.several(2, joiner="_")
        dialogue = Dialogue(
            framed(source, chance.choice(("Call `{}` first.", "Answer with `{}`.")).format(name), listing.text)
        )
        for turn, (wish, entry) in enumerate(listing.wishes(chance, chance.randint(2, 3))):
            if turn:
                dialogue.results([source.names.phrase()])
            dialogue.ask(wish)
            dialogue.call([Call(name, {argument: entry})])
        others = [c for c in source.matters(chance.choice((0, 1, 2))) if c not in listing.concepts]
        told = [tool.told for tool in make_tools(source, others, taken=(name,))]
        told.append(choosing_tool(source, name, argument, listing.names))
        chance.shuffle(told)
        return dialogue.item(self.name, told)


def choosing_tool(source: Source, name: str, argument: str, names: Sequence[str]) -> dict[str, Any]:
    """The tool that takes one of `names`."""
    parameter = Parameter(argument, "enum", required=True, options=tuple(names))
    return function_tool(name, source.chance.choice(DESCRIPTIONS), (parameter,))


TASK = Choice()
