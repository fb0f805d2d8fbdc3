"""Format: write what was said in the form that a rule asks for."""

from __future__ import annotations

from collections.abc import Callable

from harnessctl.data.general.dialogue import Dialogue
from harnessctl.data.general.item import GeneralItem
from harnessctl.data.general.listing import framed
from harnessctl.data.general.source import Source

_RULES: dict[str, Callable[[str], str]] = {
    "Write it in capitals.": str.upper,
    "Put it in square brackets.": "[{}]".format,
    "Put it in round brackets.": "({})".format,
    "Put it in double quotes.": '"{}"'.format,
    "End it with a full stop.": "{}.".format,
    "End it with two exclamation marks.": "{}!!".format,
    "Write it as a list item.": "- {}".format,
    "Write it as a heading.": "# {}".format,
    "Write it as code.": "`{}`".format,
    "Write it twice.": "{0} {0}".format,
    "Write it as JSON with the key name.": '{{"name": "{}"}}'.format,
    "Say that it is there, in the form: X is there.": "{} is there.".format,
    "Say that you got it, in the form: Got X, thanks.": "Got {}, thanks.".format,
}


class Format:
    """Three names or phrases under one rule."""

    name = "format"
    share = 1.0

    def item(self, source: Source) -> GeneralItem:
        """An item."""
        rule = source.chance.choice(list(_RULES))
        dialogue = Dialogue(framed(source, rule))
        for _ in range(3 * source.rounds):
            text = source.names.phrase() if source.chance.random() < 0.3 else source.names.one()
            dialogue.ask(text)
            dialogue.answer(_RULES[rule](text))
        return dialogue.item(self.name)


TASK = Format()
