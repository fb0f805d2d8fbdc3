"""Advantages: what each rollout gains over its siblings, per token group [3.4]; GDPO.

In a group of rollouts (one scenario, one harness state), for a token group g with its dimensions D_g:

    A_i^g  = sum over d in D_g of z(r_i^d)  -  lambda z(q(L_i^g))        (z within the group)
    A_i^g* = (A_i^g - mean^g) / std^g                                    (over the batch, per g)

D_reply is {accuracy, effectiveness}, D_tool {tool_rationality, skill_selection}. What the paper leaves open, as settled
here: z divides by the population's standard deviation (ddof 0) with nothing added to it, and where that is at most EPS
all of z is 0. A score that is null takes no part in its dimension's statistics and gives no advantage. A rollout without a
tool call has no A^tool and takes no part in any statistics of the tool group. Rollouts whose every A is 0 are discarded
before the mean and the deviation of the batch are taken, so that they dilute nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnessctl.train.rl.penalty import Penalty

#: The dimensions of each token group.
DIMENSIONS: dict[str, tuple[str, ...]] = {
    "tool": ("tool_rationality", "skill_selection"),
    "reply": ("accuracy", "effectiveness"),
}
#: A deviation or an advantage up to this is 0: what is left of equal numbers after rounding.
EPS = 1e-6


@dataclass(slots=True, frozen=True)
class Graded:
    """What advantages are made of: one rollout's scores (null: no score), whether it has called a tool, and the lengths
    of its reasoning in tokens by token group."""

    scores: Mapping[str, float | None]
    has_call: bool
    cot: Mapping[str, int]


@dataclass(slots=True, frozen=True)
class Advantage:
    """One rollout's advantages; `tool` is null where it called no tool."""

    reply: float
    tool: float | None

    @property
    def is_zero(self) -> bool:
        """Whether no token gets a gradient from it."""
        return abs(self.reply) <= EPS and (self.tool is None or abs(self.tool) <= EPS)


def z_scores(values: Sequence[float | None]) -> list[float]:
    """(x - mean) / std of those that are not null, 0 for those that are; all 0 where std is at most EPS."""
    found = [value for value in values if value is not None]
    if not found:
        return [0.0] * len(values)
    mean = math.fsum(found) / len(found)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in found) / len(found))
    if std <= EPS:
        return [0.0] * len(values)
    return [0.0 if value is None else (value - mean) / std for value in values]


def group_advantages(rollouts: Sequence[Graded], penalty: Penalty, *, step: int = 0) -> list[Advantage]:
    """The advantages within one group of rollouts, before the batch normalisation."""
    everyone = [True] * len(rollouts)
    reply = _summed(rollouts, "reply", everyone, penalty, step)
    callers = [rollout.has_call for rollout in rollouts]
    tool = _summed(rollouts, "tool", callers, penalty, step)
    return [Advantage(a, b if called else None) for a, b, called in zip(reply, tool, callers, strict=True)]


def _summed(
    rollouts: Sequence[Graded], group: str, takes_part: Sequence[bool], penalty: Penalty, step: int
) -> list[float]:
    sums = [0.0] * len(rollouts)
    for dimension in DIMENSIONS[group]:
        values = [r.scores.get(dimension) if part else None for r, part in zip(rollouts, takes_part, strict=True)]
        sums = [total + z for total, z in zip(sums, z_scores(values), strict=True)]
    weight = penalty.weight_at(step)
    if weight:
        lengths = [
            penalty.score(r.cot.get(group, 0)) if part else None for r, part in zip(rollouts, takes_part, strict=True)
        ]
        sums = [total - weight * z for total, z in zip(sums, z_scores(lengths), strict=True)]
    return sums


def batch_advantages(advantages: Sequence[Advantage]) -> list[Advantage | None]:
    """The advantages after the batch normalisation; null for those that are discarded before it."""
    kept = [advantage for advantage in advantages if not advantage.is_zero]
    reply = iter(z_scores([advantage.reply for advantage in kept]))
    tool = iter(z_scores([advantage.tool for advantage in kept]))
    out: list[Advantage | None] = []
    for advantage in advantages:
        if advantage.is_zero:
            out.append(None)
        else:
            of_reply, of_tool = next(reply), next(tool)
            out.append(Advantage(of_reply, None if advantage.tool is None else of_tool))
    return out
