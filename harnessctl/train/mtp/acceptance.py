"""Acceptance: how many of a head's drafts its policy takes, depth by depth, along sequences that are given.

At each position t at which an engine could begin a draft (y_{t+1} was sampled by the policy, and so were the tokens up to
y_{t+2+k}), depth k drafts d_k = argmax p^(k). It is judged where every shallower draft was right, so that the token it was
fed is the sequence's own: one teacher-forced pass gives what a chain of drafts gives. The two rules are SGLang's:

- greedy: d_k is accepted when it is the policy's likeliest token. Looked at where the sequence went on with the
  shallower drafts, and these were the likeliest too.
- sampled, with both thresholds at 1.0: accepted with the probability p(d_k) that the policy gives it, after temperature and
  top-p. The mean of p(d_k) where the sequence went on with the shallower drafts: exact in expectation where the policy sampled
  the sequence at the same temperature and top-p.

The accept length counts the token that each verification adds anyhow: 1 + sum_k prod_{j<=k} rate_j. An engine does not begin a
draft at every position but behind what it accepted, so that its own figure differs a little.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import torch

from harnessctl.train.mtp.head import NextNHead, following
from harnessctl.train.mtp.rows import Row


class Acceptance(msgspec.Struct, kw_only=True):
    """Rates by depth, null where a depth was never reached; `judged` is how many drafts each rate is the mean of.

    `temperature` and `top_p` are those of the sampled rule; the thresholds are SGLang's (accept-threshold-single, -acc).
    """

    temperature: float
    top_p: float
    threshold_single: float = 1.0
    threshold_acc: float = 1.0
    greedy: list[float | None]
    greedy_length: float
    greedy_judged: list[int]
    sampled: list[float | None]
    sampled_length: float
    sampled_judged: list[int]


@torch.no_grad()
def measure(
    head: NextNHead, rows: Iterable[Row], *, depths: int, temperature: float = 1.0, top_p: float = 1.0
) -> Acceptance:
    """The acceptance of `head` along the sequences of `rows`."""
    greedy, sampled = torch.zeros(2, depths, dtype=torch.float64), torch.zeros(2, depths, dtype=torch.float64)
    for row in rows:
        is_right = following(row.mask.bool(), row.segments, 1)
        drafted = is_right & following(row.mask.bool(), row.segments, 3)
        outputs = head(row.hidden, row.ids, row.segments, row.positions, depths, drafted=drafted)
        is_likeliest = is_right.clone()
        for depth, output in enumerate(outputs):
            # Anchors that are left: shallower drafts were right, and the policy went on.
            is_right = is_right & following(row.mask.bool(), row.segments, 2 + depth)
            is_likeliest = is_likeliest & is_right
            found = _judge(head, row, output, is_right, depth, temperature, top_p)
            sampled[:, depth] += torch.stack([found.probability.sum(), is_right.sum()]).cpu()
            took = is_likeliest[is_right] & found.is_likeliest
            greedy[:, depth] += torch.stack([took.sum(), is_likeliest.sum()]).cpu()
            is_likeliest = _set(is_right, took & found.is_sequence)
            is_right = _set(is_right, found.is_sequence)
    rates = [_rates(sums) for sums in (greedy, sampled)]
    return Acceptance(
        temperature=temperature,
        top_p=top_p,
        greedy=rates[0],
        greedy_length=accept_length(rates[0]),
        greedy_judged=[int(count) for count in greedy[1]],
        sampled=rates[1],
        sampled_length=accept_length(rates[1]),
        sampled_judged=[int(count) for count in sampled[1]],
    )


def accept_length(rates: Sequence[float | None]) -> float:
    """Tokens that a verification adds, on average: 1 + r_0 + r_0 r_1 + ..."""
    length, product = 1.0, 1.0
    for rate in rates:
        product *= rate or 0.0
        length += product
    return length


class _Judged(msgspec.Struct):
    """For each draft that is judged: the policy's probability of it, whether it is the policy's likeliest token, and
    whether it is the sequence's."""

    probability: torch.Tensor
    is_likeliest: torch.Tensor
    is_sequence: torch.Tensor


def _judge(
    head: NextNHead, row: Row, output: torch.Tensor, judged: torch.Tensor, depth: int, temperature: float, top_p: float
) -> _Judged:
    places = torch.nonzero(judged)
    # The policy's word on y_{t+2+k} is in its state at t+1+k.
    states = row.hidden[places[:, 0], places[:, 1] + 1 + depth]
    parts: list[tuple[torch.Tensor, ...]] = []
    for drafted, state in zip(output[judged].split(head.rows_at_once), states.split(head.rows_at_once), strict=True):
        draft = head.logits(drafted).argmax(-1)
        logits = head.logits(state.to(drafted.dtype))
        parts.append((draft, probabilities(logits, draft, temperature, top_p), logits.argmax(-1) == draft))
    draft, probability, is_likeliest = (torch.cat(part) for part in zip(*parts, strict=True))
    wanted = following(row.ids, row.segments, 2 + depth)[judged]
    return _Judged(probability, is_likeliest, draft == wanted)


def probabilities(logits: torch.Tensor, tokens: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """What a policy that samples gives `tokens` (n): softmax of `logits` (n, vocabulary) at the temperature, and of it
    the smallest set of likeliest tokens that has `top_p` of the mass."""
    all_p = torch.softmax(logits.double() / temperature, dim=-1)
    wanted = all_p.gather(-1, tokens[:, None])
    if top_p >= 1.0:
        return wanted[:, 0]
    ordered, order = all_p.sort(dim=-1, descending=True)
    is_kept = ordered.cumsum(-1) - ordered < top_p
    kept = torch.zeros_like(is_kept).scatter(-1, order, is_kept)
    mass = (all_p * kept).sum(-1)
    return torch.where(kept.gather(-1, tokens[:, None])[:, 0], wanted[:, 0] / mass, torch.zeros_like(mass))


def _set(places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A mask that has `values` at the places where `places` is set."""
    found = torch.zeros_like(places)
    found[places] = values
    return found


def _rates(sums: torch.Tensor) -> list[float | None]:
    return [float(total / count) if count else None for total, count in zip(*sums, strict=True)]
