"""Wordings: what a rewriter says of the parent's texts, asked once, and given without the names of the variant.

What always holds: a wording in which a name that the variant gave stands as a plain word is left out, so that a new name
stays unlike every word. What is kept is bounded by the parent's texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harnessctl.augment.names import NameMaker
from harnessctl.augment.operator import Rewriter, TextKind
from harnessctl.augment.words import words_of
from harnessctl.bundle.text import Text


class _Known:
    """The wordings of one text: `words` of each, and `all_words` of them together."""

    __slots__ = ("all_words", "texts", "words")

    def __init__(self, texts: Sequence[Text]) -> None:
        self.texts = list(texts)
        self.words = [_words(member) for member in texts]
        self.all_words: frozenset[str] = frozenset().union(*self.words)


class KeptWordings:
    """The answers of `rewriter` for `texts`, those of the parent, known by identity."""

    def __init__(self, rewriter: Rewriter, texts: Iterable[Text]) -> None:
        self.rewriter = rewriter
        self._texts = {id(text): text for text in texts}
        self._known: dict[tuple[int, TextKind], _Known] = {}

    def known(self, text: Text, kind: TextKind) -> _Known:
        """What the rewriter says of `text`; asked again only for a text that is not the parent's."""
        key = (id(text), kind)
        found = self._known.get(key)
        if found is None:
            found = _Known(self.rewriter.wordings(text, kind))
            if id(text) in self._texts:
                self._known[key] = found
        return found


class VariantWordings:
    """The rewriter that the operators of one variant ask."""

    def __init__(self, kept: KeptWordings, names: NameMaker) -> None:
        self._kept = kept
        self._names = names
        self.name = kept.rewriter.name

    def wordings(self, text: Text, kind: TextKind) -> Sequence[Text]:
        """Wordings of `text` without the variant's new names in them."""
        known = self._kept.known(text, kind)
        if self._names.are_unlike(known.all_words):
            return known.texts
        return [member for member, words in zip(known.texts, known.words, strict=True) if self._names.are_unlike(words)]


def _words(text: Text) -> frozenset[str]:
    found: set[str] = set()
    for part in text:
        if isinstance(part, str):
            found |= words_of(part)
    return frozenset(found)
