"""Copy: say what was said, letter by letter; mostly names that nobody has seen before."""

from __future__ import annotations

from harnessctl.data.general.dialogue import Dialogue
from harnessctl.data.general.item import GeneralItem
from harnessctl.data.general.listing import framed
from harnessctl.data.general.source import Source

_ORDERS = ("Copy each line.", "Say it again.", "Repeat what I write.", "Echo the text.", "Answer with the same text.")


class Copy:
    """Three lines of one to three names, phrases or numbers."""

    name = "copy"
    share = 1.0

    def item(self, source: Source) -> GeneralItem:
        """An item."""
        dialogue = Dialogue(framed(source, source.chance.choice(_ORDERS)))
        for _ in range(3 * source.rounds):
            line = self._line(source)
            dialogue.ask(line)
            dialogue.answer(line)
        return dialogue.item(self.name)

    def _line(self, source: Source) -> str:
        chance = source.chance
        parts = [
            source.names.phrase() if chance.random() < 0.2 else source.names.one() for _ in range(chance.randint(1, 3))
        ]
        if chance.random() < 0.2:
            parts.append(str(chance.randrange(10000)))
        return chance.choice((" ", ", ", "; ")).join(parts)


TASK = Copy()
