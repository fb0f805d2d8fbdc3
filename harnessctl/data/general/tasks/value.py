"""Value: say the value that stands under a key, in a list or in compact JSON as tools' results are."""

from __future__ import annotations

import orjson

from harnessctl.data.general.dialogue import Dialogue
from harnessctl.data.general.item import GeneralItem
from harnessctl.data.general.listing import framed
from harnessctl.data.general.source import Source
from harnessctl.data.general.tools import result_value


class Value:
    """Two to four keys of one table."""

    name = "value"
    share = 2.0

    def item(self, source: Source) -> GeneralItem:
        """An item."""
        chance = source.chance
        keys = source.names.several(source.count())
        table = {key: result_value(source) for key in keys}
        if chance.random() < 0.5:
            text = "\n".join(["Values:", *(f"{key}: {value}" for key, value in table.items())])
        else:
            text = orjson.dumps(table).decode()
        dialogue = Dialogue(framed(source, text))
        form = chance.choice(("{}", "{}", "{}?", "What is {}?", "the value of {}"))
        for _ in range(source.rounds):
            for key in chance.sample(keys, min(len(keys), chance.randint(2, 4))):
                dialogue.ask(form.format(key))
                dialogue.answer(str(table[key]))
        return dialogue.item(self.name)


TASK = Value()
