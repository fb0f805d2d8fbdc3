"""The loss of a draft head [5.5]: negative log-likelihood of the sequence's own tokens, over K depths.

    L_MTP = -1/Z  sum_{k<K} w_k  sum_t  c_{t,k} log p^(k)(y_{t+2+k}),      Z = sum_k w_k sum_t c_{t,k}

in the index of `harnessctl.train.mtp.head`, which says how the paper's maps to it. w_k is 1 in the paper (`equal`);
`decay` takes beta^k. c_{t,k} is 1 where y_{t+2+k} is in the same sequence and, a departure, was sampled by the policy: the
paper counts every token, and `labels=all` does so too. A draft is only ever asked for where the policy speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from harnessctl.train.mtp.head import following

Labels = Literal["policy", "all"]


def depth_weights(depths: int, kind: Literal["equal", "decay"], beta: float) -> list[float]:
    """w_k for k < depths."""
    return [1.0 if kind == "equal" else beta**depth for depth in range(depths)]


def is_counted(mask: torch.Tensor, segments: torch.Tensor, depth: int, labels: Labels) -> torch.Tensor:
    """c_{t,k} as (rows, tokens) of bool for k = `depth`. `mask` is 1 where the policy sampled y_t; sequence 0 is padding."""
    by = 2 + depth
    named = mask.bool() if labels == "policy" else torch.ones_like(mask, dtype=torch.bool)
    return following(named & (segments > 0), segments, by)


def counts(mask: torch.Tensor, segments: torch.Tensor, depths: int, labels: Labels) -> list[int]:
    """How many terms each depth has: sum_t c_{t,k}."""
    return [int(is_counted(mask, segments, depth, labels).sum()) for depth in range(depths)]


def depth_losses(
    outputs: Sequence[torch.Tensor],
    logits: Callable[[torch.Tensor], torch.Tensor],
    ids: torch.Tensor,
    mask: torch.Tensor,
    segments: torch.Tensor,
    *,
    labels: Labels = "policy",
    rows_at_once: int = 4096,
) -> tuple[list[torch.Tensor], list[int]]:
    """For each depth the SUM over its counted terms of -log p, and how many of them the head's likeliest token hits.

    `outputs` are those of the head, (rows, tokens, width) each; `logits` projects them to the vocabulary, here only where
    a term is counted and `rows_at_once` at a time, computed again on the way back when there are more.
    """
    losses: list[torch.Tensor] = []
    hits: list[int] = []
    for depth, output in enumerate(outputs):
        counted = is_counted(mask, segments, depth, labels)
        states, wanted = output[counted], following(ids, segments, 2 + depth)[counted]
        loss, right = output.sum() * 0.0, 0
        is_long = len(wanted) > rows_at_once
        for part, target in zip(states.split(rows_at_once), wanted.split(rows_at_once), strict=True):
            if is_long:
                added, found = checkpoint(_part, logits, part, target, use_reentrant=False)
            else:
                added, found = _part(logits, part, target)
            loss, right = loss + added, right + int(found)
        losses.append(loss)
        hits.append(right)
    return losses, hits


def _part(
    logits: Callable[[torch.Tensor], torch.Tensor], states: torch.Tensor, wanted: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = logits(states)
    return functional.cross_entropy(scores, wanted, reduction="sum"), (scores.detach().argmax(-1) == wanted).sum()
