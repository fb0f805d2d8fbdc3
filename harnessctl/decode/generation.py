"""Generation: the loop that reads a prompt and says tokens until an end, a stop string or the limit.

What always holds: between two forward passes the context is whole, so that a reply given up half-way leaves a usable
one; `check` is asked before every pass. Tokens that a grammar forces are read in the same pass as the token before
them, and count as said.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec
import torch

from harnessctl.decode.grammar import Constraint
from harnessctl.decode.kv import Context
from harnessctl.decode.sampling import Sampler
from harnessctl.decode.tokens import TokenCodec
from harnessctl.decode.weights import Weights

# Tokens of a prompt read in one pass: few enough that a deadline is noticed within a second on a slow machine.
CHUNK = 256


class Said(msgspec.Struct):
    """What has been said so far. `finish` is null while the reply goes on; `text` leaves a stop string out."""

    ids: list[int] = []
    logprobs: list[float] = []
    text: str = ""
    finish: Literal["stop", "length"] | None = None
    first_token_at: float | None = None


class Limits(msgspec.Struct, kw_only=True):
    """What ends a reply: ids, strings, and how many tokens."""

    ends: frozenset[int]
    stop: list[str]
    max_tokens: int


class Generation:
    """One reply. `said` grows as `run` goes on; `check` raises to give up."""

    def __init__(
        self,
        weights: Weights,
        codec: TokenCodec,
        *,
        sampler: Sampler,
        constraint: Constraint | None,
        limits: Limits,
        check: Callable[[], None],
    ) -> None:
        self._weights = weights
        self._codec = codec
        self._sampler = sampler
        self._constraint = constraint
        self._limits = limits
        self._check = check
        self.said = Said()

    def run(self, context: Context, prompt: list[int]) -> Said:
        """Read what of `prompt` the context lacks, and speak. The context ends up with all that was read and said,
        less the last token."""
        with torch.inference_mode():
            logits = self._read_prompt(context, prompt)
            while not self.said.finish:
                allowed = self._constraint.allowed() if self._constraint else None
                token, log_prob = self._sampler.draw(logits, allowed)
                self._say([token], [log_prob])
                if not self.said.finish:
                    logits = self._read_with_forced(context, [token])
        return self.said

    def _read_prompt(self, context: Context, prompt: list[int]) -> torch.Tensor:
        """Logits (V,) for the first token that is free."""
        rest = prompt[len(context.ids) :]
        while len(rest) > CHUNK:
            self._feed(context, rest[:CHUNK], keep=1)
            rest = rest[CHUNK:]
        return self._read_with_forced(context, rest)

    def _read_with_forced(self, context: Context, ids: list[int]) -> torch.Tensor:
        """Read `ids` and the tokens that must follow them, say the latter; logits (V,) for the next one."""
        forced = self._constraint.forced() if self._constraint else []
        forced = forced[: self._limits.max_tokens - len(self.said.ids)]
        logits = self._feed(context, ids + forced, keep=1 + len(forced))
        if forced:
            self._say(forced, self._sampler.log_probs(logits[:-1], forced))
        return logits[-1]

    def _feed(self, context: Context, ids: list[int], *, keep: int) -> torch.Tensor:
        """One forward pass; logits (keep, V) of the last tokens, float32 on the CPU."""
        self._check()
        out = self._weights.model(
            input_ids=torch.tensor([ids], device=self._weights.device),
            cache=context.cache,
            use_cache=True,
            logits_to_keep=keep,
        )
        context.ids += ids
        return out.logits[0].float().cpu()

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
            found = [at for stop in limits.stop if (at := said.text.find(stop)) >= 0]
            if found:
                said.text = said.text[: min(found)]
                said.finish = "stop"
                return
        if len(said.ids) >= limits.max_tokens:
            said.finish = "length"
            # A character whose bytes were cut in two is no text.
            said.text = self._codec.decode(said.ids).rstrip("\ufffd")
