"""Lookup: say the name of the entry that a wish is about."""

from __future__ import annotations

from harnessctl.data.general.dialogue import Dialogue
from harnessctl.data.general.item import GeneralItem
from harnessctl.data.general.listing import framed, make_listing
from harnessctl.data.general.source import Source


class Lookup:
    """Two to four wishes on one list."""

    name = "lookup"
    share = 5.0

    def item(self, source: Source) -> GeneralItem:
        """An item."""
        listing = make_listing(source)
        dialogue = Dialogue(framed(source, listing.text))
        for _ in range(source.rounds):
            for wish, name in listing.wishes(source.chance, source.chance.randint(2, 4)):
                dialogue.ask(wish)
                dialogue.answer(name)
        return dialogue.item(self.name)


TASK = Lookup()
