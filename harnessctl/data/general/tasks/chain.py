"""Chain: take the entry that a wish is about, call the tool that it is about, and answer from the result in a set form."""

from __future__ import annotations

from harnessctl.data.general.dialogue import Call, Dialogue
from harnessctl.data.general.item import GeneralItem
from harnessctl.data.general.listing import framed, make_listing
from harnessctl.data.general.source import Source
from harnessctl.data.general.tasks.choice import choosing_tool
from harnessctl.data.general.tools import make_result, make_tools, wished

_FORMS = {
    "Say the value alone.": "{value}",
    "Reply in the form: key: value.": "{key}: {value}",
    "Reply in the form: The key is value.": "The {key} is {value}.",
}
#: Most entries and most tools of one request: it is the longest of all tasks.
MOST_ENTRIES = 6
MOST_TOOLS = 3


class Chain:
    """One wish: both calls in one answer or one after the other, as the prompt has it, then a text."""

    name = "chain"
    share = 2.0

    def item(self, source: Source) -> GeneralItem:
        """An item."""
        chance = source.chance
        listing = make_listing(source, most=MOST_ENTRIES)
        first, argument, key = source.names.several(3, joiner="_")
        tools = make_tools(
            source, chance.sample(listing.concepts, min(MOST_TOOLS, len(listing.concepts))), taken=(first,)
        )
        tool = chance.choice(tools)
        wish, call = wished(source, tool, whole=False)
        choice = Call(first, {argument: listing.names[listing.concepts.index(tool.concept)]})
        is_at_once = chance.random() < 0.5
        rule = f"Call `{first}` and a tool at once." if is_at_once else f"Call `{first}` first, then a tool."
        form = chance.choice(list(_FORMS))
        dialogue = Dialogue(framed(source, f"{rule} {form}", listing.text))
        dialogue.ask(
            chance.choice(("{wish} {key}?", "{key}? {wish}", "{wish} Tell me the {key}.")).format(wish=wish, key=key)
        )
        page, result = source.names.phrase(), make_result(source, key)
        if is_at_once:
            dialogue.call([choice, call])
            dialogue.results([page, result])
        else:
            dialogue.call([choice])
            dialogue.results([page])
            dialogue.call([call])
            dialogue.results([result])
        dialogue.answer(_FORMS[form].format(key=key, value=result[key]))
        told = [one.told for one in tools] + [choosing_tool(source, first, argument, listing.names)]
        chance.shuffle(told)
        return dialogue.item(self.name, told)


TASK = Chain()
