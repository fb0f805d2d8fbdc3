"""Sampling: one token from the logits, with the log-probability that training needs.

What always holds: the same seed and the same logits give the same tokens, on any device (the draw is made on the CPU
with a generator of its own). The log-probability of a token is log softmax(logits / temperature), of the raw logits at
temperature 0: before top-p, before the grammar and before the ban on special tokens. That is what a trainer computes
again from the ids alone, so that the ratio of new to old policy starts at 1.
"""

from __future__ import annotations

import torch

from harnessctl.runtime.protocols import Sampling


class Sampler:
    """Draws the tokens of one reply. `banned` are ids that must never be drawn where no grammar says what may be."""

    def __init__(self, sampling: Sampling, *, banned: torch.Tensor) -> None:
        self.temperature = sampling.temperature or 0.0
        self._top_p = 1.0 if sampling.top_p is None else sampling.top_p
        self._banned = banned
        self._generator = torch.Generator(device="cpu")
        if sampling.seed is None:
            self._generator.seed()
        else:
            self._generator.manual_seed(sampling.seed)

    def draw(self, logits: torch.Tensor, allowed: bytes | None) -> tuple[int, float]:
        """(token, its log-probability) from `logits` (V,) on the CPU in float32. `allowed`: a byte per token, 0 bans."""
        scores = self._scaled(logits)
        log_probs = torch.log_softmax(scores, dim=-1)
        if allowed is None:
            scores = scores.index_fill(0, self._banned, -torch.inf)
        else:
            # A bytearray, because torch warns of memory that it could write to and must not.
            refused = torch.frombuffer(bytearray(allowed), dtype=torch.uint8)[: len(scores)] == 0
            scores = scores.masked_fill(refused, -torch.inf)
        token = int(scores.argmax()) if self.temperature == 0 else self._drawn(self._nucleus(scores))
        return token, float(log_probs[token])

    def log_probs(self, logits: torch.Tensor, ids: list[int]) -> list[float]:
        """The log-probabilities of given tokens: row i of `logits` (N, V) is for the i-th of `ids`."""
        rows = torch.log_softmax(self._scaled(logits), dim=-1)
        return rows.gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()

    def _scaled(self, logits: torch.Tensor) -> torch.Tensor:
        return logits / self.temperature if self.temperature else logits

    def _drawn(self, probabilities: torch.Tensor) -> int:
        """The token at a random point of the mass, which need not be 1. torch.multinomial draws a number for each token of
        the vocabulary, a fifth of the time that rollouts of a small model take."""
        mass = probabilities.double().cumsum(0)
        point = torch.rand((), dtype=torch.float64, generator=self._generator) * mass[-1]
        token = int(torch.searchsorted(mass, point, right=True))
        # A product that is rounded up to the whole mass is behind the last token that may be drawn.
        return token if token < len(mass) else int(probabilities.nonzero()[-1])

    def _nucleus(self, scores: torch.Tensor) -> torch.Tensor:
        """Probabilities of the smallest set of tokens that holds `top_p` of the mass, the rest 0."""
        probabilities = torch.softmax(scores, dim=-1)
        if self._top_p >= 1.0:
            return probabilities
        ordered, order = probabilities.sort(descending=True)
        # A token stays while the mass before it is below top_p: the first always stays.
        ordered[ordered.cumsum(0) - ordered >= self._top_p] = 0.0
        return torch.zeros_like(probabilities).scatter_(0, order, ordered)
