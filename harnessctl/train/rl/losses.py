"""Losses: the clipped surrogate over tokens with advantages of their own [3.4].

With r the ratio of the new policy to the old one, a token's loss is -min(r A, clip(r, 1 - low, 1 + high) A). Level `token`: r is the
token's own ratio (PPO, GRPO). Level `sequence`: r is exp(mean log ratio) over the policy's tokens of the path (GSPO). Since
tokens of one path have different advantages here, the sequence ratio is taken in its per-token form: its value is the
sequence's, its gradient reaches each token through that token alone (GSPO-token; with one advantage a path the same gradient).
"""

from __future__ import annotations

from typing import NamedTuple

import torch


class Surrogate(NamedTuple):
    """Per token, each (T,): the loss, the ratio (detached), and whether clipping holds the token back."""

    losses: torch.Tensor
    ratio: torch.Tensor
    clipped: torch.Tensor


def surrogate(
    log_probs: torch.Tensor,
    old: torch.Tensor,
    advantages: torch.Tensor,
    *,
    low: float,
    high: float,
    sequences: torch.Tensor | None = None,
) -> Surrogate:
    """The clipped surrogate of (T,) tokens. `sequences` gives each token's sequence from 0 on and asks for the sequence
    level; null: the token level."""
    log_ratio = log_probs - old
    if sequences is not None:
        means = mean_by(log_ratio.detach(), sequences)
        log_ratio = means[sequences] + (log_probs - log_probs.detach())
    ratio = log_ratio.exp()
    free, bound = ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages
    return Surrogate(-torch.minimum(free, bound), ratio.detach(), (bound < free).detach())


def mean_by(values: torch.Tensor, sequences: torch.Tensor) -> torch.Tensor:
    """The mean of (T,) values for each sequence; (N,)."""
    count = int(sequences.max()) + 1 if len(sequences) else 0
    sums = values.new_zeros(count).index_add(0, sequences, values)
    sizes = values.new_zeros(count).index_add(0, sequences, torch.ones_like(values))
    return sums / sizes.clamp(min=1)


def k3(log_probs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """The k3 estimate of KL(policy || reference) of each token that the policy sampled: exp(d) - d - 1 with
    d = reference - log_probs; never negative."""
    difference = reference - log_probs
    return difference.exp() - difference - 1
