"""Penalty: what reasoning costs by its length [3.4, 5.4].

The formula of r_CoT is lost from our copy of the paper. Its logged means (q 0.466 at 290.6 tokens of tool-call reasoning,
0.272 at 171.2) fit q(L) = min(1, L / 625), and 'a raw contribution from -0.0466' fits lambda = 0.1: our defaults.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Penalty(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The key `cot`. `weight` is lambda; `full_at` the length in tokens from which q is 1; over the first `ramp` steps
    lambda rises linearly, so that a policy that has yet to learn the task is not first taught to be short."""

    weight: Annotated[float, Meta(ge=0)] = 0.1
    full_at: Annotated[int, Meta(ge=1)] = 625
    ramp: Annotated[int, Meta(ge=0)] = 0

    def score(self, length: int) -> float:
        """q(L) in [0, 1]; 0 where there is no reasoning."""
        return min(1.0, length / self.full_at)

    def weight_at(self, step: int) -> float:
        """lambda at a step (from 0): (step + 1) / ramp of it within the ramp, all of it afterwards."""
        return self.weight * min(1.0, (step + 1) / self.ramp) if self.ramp else self.weight
