"""Relabelling: the names of a dialogue in other tokens.

Names to train on are made of a few thousand words, and a small policy learns to find and say those rather than whatever
stands there: with every token of its vocabulary in a name now and then, it cannot (docs/log.md has the figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from harnessctl.train.sft.rows import Tokens

#: Tasks whose answers are what stands in the prompt, and say nothing of their own.
_RELABELLED = ("copy", "lookup", "reverse", "value")


class Relabelling:
    """Puts a `share` of the dialogues of some tasks into random tokens. `vocabulary` has the ids by their text."""

    def __init__(self, vocabulary: Mapping[str, int], *, share: float) -> None:
        self._share = share
        self._is_word = torch.zeros(max(vocabulary.values()) + 1, dtype=torch.bool)
        words = [text for text in vocabulary if len(text) > 1 and text.isascii() and text.isalpha()]
        self._is_word[[vocabulary[word] for word in words]] = True

    def of(self, task: str, tokens: Tokens, generator: torch.Generator) -> Tokens:
        """`tokens`, or the same with each word of an answer as another word wherever it stands, two as two, and none as one
        that stands there."""
        if task not in _RELABELLED or torch.rand((), generator=generator) >= self._share:
            return tokens
        ids = tokens.ids.long()
        said = ids[tokens.mask.bool()].unique()
        said = said[self._is_word[said]]
        free = self._is_word.clone()
        free[ids] = False
        if not len(said) or int(free.sum()) < len(said):
            return tokens
        new = torch.arange(len(self._is_word), dtype=tokens.ids.dtype)
        new[said] = torch.multinomial(free.float(), len(said), generator=generator).to(new.dtype)
        return replace(tokens, ids=new[ids])
