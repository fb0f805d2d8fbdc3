"""Names: made of words, of syllables or of single letters, of one space only.

What always holds: no word and no syllable of a held-out name is in a name to train on (digits and joiners aside). No
word is one that augmentation makes names of, so that renamed skills and tools are new to a base, too (tested).
"""

from __future__ import annotations

import functools
import random
from pathlib import Path

from harnessctl.data.general.space import Space, space_of

_ONSETS = (*"bdfgklmnprstvwz", "br", "dr", "gr", "kl", "pl", "st", "tr", "sh", "ch", "th")
_RHYMES = (*"aeiou", "ai", "ea", "oo", "or", "an", "el", "in")
#: Words that syllables spell by chance, and that augmentation makes names of.
_SPELLED = frozenset((
    "begin", "change", "channel", "data", "date", "delete", "drive", "dune", "figure", "file", "formula", "give",
    "granite", "label", "live", "make", "manage", "maple", "measure", "memo", "mode", "module", "monitor", "mute",
    "name", "node", "note", "panel", "rebate", "release", "remove", "revise", "revoke", "save", "shade", "size",
    "soothe", "state", "store", "theme", "tile", "time", "trade", "visitor", "zone",
))  # fmt: skip
#: Letters and digits of names that read as nothing.
_OPAQUE = "bcdfghjkmnpqrstvwxz23456789"


@functools.cache
def words(space: Space) -> tuple[str, ...]:
    """The words of a space, sorted."""
    found = Path(__file__).with_name("words.txt").read_text("utf-8").split()
    return tuple(sorted(word for word in found if space_of(word) == space))


@functools.cache
def syllables(space: Space) -> tuple[str, ...]:
    """The syllables of a space. Each begins with consonants and ends with a vowel, n, r or l, so that what is made of
    them falls into syllables in one way only."""
    found = [onset + rhyme for onset in _ONSETS for rhyme in _RHYMES]
    return tuple(syllable for syllable in found if space_of(syllable) == space)


@functools.cache
def _taken() -> frozenset[str]:
    return _SPELLED | set(words("train")) | set(words("held-out"))


class Names:
    """Draws names of one space from `chance`; where they are plain, names of one word."""

    def __init__(self, chance: random.Random, space: Space, *, is_plain: bool = False) -> None:
        self._chance = chance
        self._is_plain = is_plain
        self._space = space
        self._words = words(space)
        self._syllables = syllables(space)

    def word(self) -> str:
        """A word, or one made of syllables."""
        chance = self._chance
        return chance.choice(self._words) if chance.random() < 0.7 else self._made()

    def one(self, *, joiner: str | None = None) -> str:
        """A name of one to three parts; `joiner` null: `-` or `_`."""
        chance = self._chance
        if self._is_plain:
            return chance.choice(self._words)
        if chance.random() < 0.08:
            return self._opaque()
        parts = [self.word() for _ in range(chance.choice((1, 1, 2, 2, 2, 3)))]
        if chance.random() < 0.08:
            parts.append(str(chance.randrange(1, 100)))
        return (joiner or chance.choice("-_")).join(parts)

    def several(self, count: int, *, joiner: str | None = None) -> list[str]:
        """`count` names, no two the same."""
        found: dict[str, None] = {}
        while len(found) < count:
            found[self.one(joiner=joiner)] = None
        return list(found)

    def phrase(self) -> str:
        """Two to four words with spaces between."""
        return " ".join(self.word() for _ in range(self._chance.choice((2, 2, 3, 4))))

    def _made(self) -> str:
        """Syllables that spell no word, for that might be one of the other space."""
        while True:
            made = "".join(self._chance.choice(self._syllables) for _ in range(self._chance.choice((2, 2, 3))))
            if made not in _taken():
                return made

    def _opaque(self) -> str:
        """Letters that spell nothing. They cannot be split by parts, so each name as a whole belongs to a space."""
        while True:
            name = self._chance.choice(_OPAQUE[:19]) + "".join(
                self._chance.choices(_OPAQUE, k=self._chance.choice((3, 4, 5)))
            )
            if space_of(name) == self._space:
                return name
