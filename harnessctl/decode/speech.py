"""Speech: one reply under way: what was said, what may be said next, and when it ends. Knows no model and no cache.

What always holds: tokens that a grammar forces count as said; a reply ends with an end token, a stop string or the limit,
whichever comes first; after that nothing more is said.
"""

from __future__ import annotations

import time

import msgspec
import torch

from harnessctl.decode.grammar import Constraint
from harnessctl.decode.replying import Said, cut_at_stop
from harnessctl.decode.sampling import Sampler
from harnessctl.decode.tokens import TokenCodec


class Limits(msgspec.Struct, kw_only=True):
    """What ends a reply: ids, strings, and how many tokens."""

    ends: frozenset[int]
    stop: list[str]
    max_tokens: int


class Speech:
    """One reply. Whoever reads for it asks in turn: `forced`, a forward pass, `hear`, `draw`."""

    def __init__(self, codec: TokenCodec, *, sampler: Sampler, constraint: Constraint | None, limits: Limits) -> None:
        self._codec = codec
        self._sampler = sampler
        self._constraint = constraint
        self._limits = limits
        self.said = Said()

    def forced(self) -> list[int]:
        """The tokens that must come next: to be read together with what comes before them."""
        forced = self._constraint.forced() if self._constraint else []
        return forced[: self._limits.max_tokens - len(self.said.ids)]

    def hear(self, forced: list[int], logits: torch.Tensor) -> None:
        """Say `forced`. `logits` (1 + N, V) are of the token before them and of themselves, float32 on the CPU."""
        if forced:
            self._say(forced, self._sampler.log_probs(logits[:-1], forced))

    def draw(self, logits: torch.Tensor) -> int:
        """Say one token that is free, from `logits` (V,), float32 on the CPU; returns it."""
        allowed = self._constraint.allowed() if self._constraint else None
        token, log_prob = self._sampler.draw(logits, allowed)
        self._say([token], [log_prob])
        return token

    def _say(self, ids: list[int], log_probs: list[float]) -> None:
        said, limits = self.said, self._limits
        if said.first_token_at is None:
            said.first_token_at = time.monotonic()
        said.ids += ids
        said.logprobs += log_probs
        if ids[-1] in limits.ends:
            said.finish = "stop"
            said.text = self._codec.decode(said.ids[:-1])
            return
        if self._constraint:
            self._constraint.accept(ids)
        if limits.stop:
            said.text = self._codec.decode(said.ids)
            cut = cut_at_stop(said.text, limits.stop)
            if cut is not None:
                said.text = cut
                said.finish = "stop"
                return
        if len(said.ids) >= limits.max_tokens:
            said.finish = "length"
            # A character whose bytes were cut in two is no text.
            said.text = self._codec.decode(said.ids).rstrip("\ufffd")
