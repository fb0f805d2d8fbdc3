"""Source: what a general task draws its items from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harnessctl.data.general.concepts import Concept
from harnessctl.data.general.item import GeneralItem
from harnessctl.data.general.names import Names

#: Fewest and most entries of a list to choose from, unless said otherwise.
ENTRIES = (2, 10)


@dataclass(slots=True, frozen=True)
class Source:
    """One item's chance, names, matters and bounds. What is asked in a dialogue is drawn `rounds` times over; where it
    `is_literal`, a wish says what a list says of its matter."""

    chance: random.Random
    names: Names
    concepts: Sequence[Concept]
    entries: tuple[int, int]
    rounds: int = 1
    is_literal: bool = False

    def count(self, *, most: int | None = None) -> int:
        """How many entries a list has."""
        least, limit = self.entries
        return self.chance.randint(least, limit if most is None else max(least, min(limit, most)))

    def matters(self, count: int) -> list[Concept]:
        """`count` matters, no two the same."""
        return self.chance.sample(self.concepts, count)


class Task(Protocol):
    """One task: a module of `harnessctl/data/general/tasks/` whose `TASK` fits this. `share` is how often it comes up."""

    name: str
    share: float

    def item(self, source: Source) -> GeneralItem:
        """An item."""
        ...
