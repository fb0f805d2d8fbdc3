"""Divergence: reverse KL between two next-token distributions over the whole vocabulary.

    KL(s || b) = sum_v p_s(v) (log p_s(v) - log p_b(v)),     p = softmax(logits / temperature)
    d KL / d z_s(v) = p_s(v) (log p_s(v) - log p_b(v) - KL(s || b)) / temperature

An expectation over all v, not an estimate from the token that was sampled: that token only decides which contexts are
looked at. Nothing is scaled by the square of the temperature.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from harnessctl.train.sft.token_loss import PositionLoss


def reverse_kl(student: torch.Tensor, base: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """KL of each position (n,) from logits (n, vocabulary), in nats. The gradient goes into `student` alone."""
    ours = torch.log_softmax(student / temperature, dim=-1)
    theirs = torch.log_softmax(base.detach() / temperature, dim=-1)
    return (ours.exp() * (ours - theirs)).sum(-1)


def divergence_from(base: Callable[[torch.Tensor], torch.Tensor], temperature: float) -> PositionLoss:
    """The loss of positions whose values are the base's states there; `base` makes logits of them. Shown beside it: the
    entropy of the student in nats, which falls to nothing where it collapses."""

    def loss(logits: torch.Tensor, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            wanted = base(states).float()
            known = torch.log_softmax(logits, dim=-1)
            entropy = -(known.exp() * known).sum()
        return reverse_kl(logits, wanted, temperature).sum(), entropy

    return loss
