"""Context: some of what a policy only reads is to be foretold, too.

What stands in a prompt names again and again what stands before it there, so that a model that begins with nothing has
far more to learn finding things from than the answers alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harnessctl.train.base.config import ContextConfig
from harnessctl.train.sft.rows import Tokens


@dataclass(slots=True, frozen=True)
class Foretold(Tokens):
    """Tokens of which the masked ones are to be foretold; `weights` has what each of those weighs, in order."""

    weights: torch.Tensor


def with_context(tokens: Tokens, config: ContextConfig, generator: torch.Generator) -> Foretold:
    """`tokens` with a share of what is only read to be foretold, too; an answer's token weighs 1."""
    answer = tokens.mask.bool()
    drawn = torch.rand(len(tokens), generator=generator) < config.share
    chosen = answer | drawn
    weights = torch.where(answer, 1.0, config.weight)
    chosen[:1] = False
    return Foretold(tokens.ids, chosen.int(), weights[chosen])


def weighted_cross_entropy(logits: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum of -w log p(label) and how many labels of weight 1 are the likeliest token; `logits` (n, vocabulary), `values`
    (n, 2) with a label and its weight each."""
    labels, weights = values[:, 0].long(), values[:, 1]
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    right = (logits.detach().argmax(-1) == labels) & (weights == 1.0)
    return (losses * weights).sum(), right.sum()
