"""Listing: a list `description => name` in the system prompt, from which a wish is looked up by its meaning.

The description stands before the name: small models look names up best that way (docs/local-model.md has the trial).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from harnessctl.data.general.concepts import Concept
from harnessctl.data.general.source import Source

_HEADS = ("Skills:", "Tools:", "Entries:", "Names:", "Guides:", "Desks:")
_MARKS = ("=>", "=>", "=>", "=>", "->")
#: Lines that may stand around a list and change nothing in what is right.
_RULES = (
    "Be brief.",
    "Use the names below.",
    "Stay polite.",
    "Keep to what was asked.",
    "You work at a desk.",
    "You help people.",
    "Write plain text.",
    "Do not guess.",
)


@dataclass(slots=True, frozen=True)
class Listing:
    """The list as text, and its matters, what it says of each and their names, in the same order."""

    text: str
    concepts: Sequence[Concept]
    said: Sequence[str]
    names: Sequence[str]
    is_literal: bool

    def wishes(self, chance: random.Random, count: int) -> list[tuple[str, str]]:
        """(wish, name of the entry that it is about), no entry twice; mostly in words that the list does not have, or
        where it is literal, in its very words."""
        places = chance.sample(range(len(self.names)), min(count, len(self.names)))
        return [
            (self.said[place] if self.is_literal else wish_about(self.concepts[place], chance), self.names[place])
            for place in places
        ]


def wish_about(concept: Concept, chance: random.Random) -> str:
    """A wish that is about a matter; one in five names it as a description does."""
    return chance.choice(concept.asks if chance.random() < 0.8 else concept.about)


def make_listing(source: Source, *, most: int | None = None) -> Listing:
    """A list of as many entries as the source's bounds have it, `most` at most."""
    chance = source.chance
    count = source.count(most=most)
    concepts, names = source.matters(count), source.names.several(count)
    mark = chance.choice(_MARKS)
    said = [chance.choice(concept.about) for concept in concepts]
    lines = [f"{about} {mark} {name}" for about, name in zip(said, names, strict=True)]
    return Listing("\n".join([chance.choice(_HEADS), *lines]), concepts, said, names, source.is_literal)


def framed(source: Source, *texts: str) -> str:
    """A system prompt of `texts` in a random order, mostly with rules before them that change nothing."""
    chance = source.chance
    parts = list(texts)
    chance.shuffle(parts)
    rules = chance.sample(_RULES, chance.choice((0, 0, 1, 1, 2, 3)))
    if rules:
        mark = chance.choice(("- ", "- ", ""))
        parts.insert(0, "\n".join(mark + rule for rule in rules))
    return "\n\n".join(parts)
