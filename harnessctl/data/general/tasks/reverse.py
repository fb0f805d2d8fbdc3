"""Reverse: say the words in reverse order."""

from __future__ import annotations

from harnessctl.data.general.dialogue import Dialogue
from harnessctl.data.general.item import GeneralItem
from harnessctl.data.general.listing import framed
from harnessctl.data.general.source import Source

_ORDERS = (
    "Write the words in reverse order.",
    "Say the words from last to first.",
    "Turn the order of the words round.",
)


class Reverse:
    """Three lines of two to five words."""

    name = "reverse"
    share = 1.0

    def item(self, source: Source) -> GeneralItem:
        """An item."""
        dialogue = Dialogue(framed(source, source.chance.choice(_ORDERS)))
        for _ in range(3 * source.rounds):
            words = [source.names.word() for _ in range(source.chance.randint(2, 5))]
            dialogue.ask(" ".join(words))
            dialogue.answer(" ".join(reversed(words)))
        return dialogue.item(self.name)


TASK = Reverse()
