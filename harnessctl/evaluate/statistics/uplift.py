"""Uplift: the relative difference of a metric per visitor between two arms of an online test [5.8, Table 10].

What always holds: a visitor is one observation, however many rows it has; a visitor's bucket is a hash of salt and name,
so that it is the same today and tomorrow and on every machine.
"""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist

import msgspec

#: Buckets that visitors are hashed into.
BUCKETS = 10_000
#: Below this, a split is not the one that was planned.
MISMATCH_P = 0.001


class Arm(msgspec.Struct, kw_only=True):
    """One arm: visitors, and sum and mean of the metric over them."""

    name: str
    visitors: int
    total: float
    mean: float


class Uplift(msgspec.Struct, kw_only=True):
    """`uplift` is treatment's mean / control's - 1, [low, high] its interval, `p` two-sided against 0.

    `split_p` is the probability of a split as uneven as this one where `share` of visitors go to the treatment; null where
    nobody said how many should. A split that is not the planned one says that some visitors are missing, and then the
    uplift is of who is left.
    """

    control: Arm
    treatment: Arm
    uplift: float
    low: float
    high: float
    p: float
    level: float
    split_p: float | None = None

    @property
    def is_mismatched(self) -> bool:
        """Whether the split is not the one that was planned."""
        return self.split_p is not None and self.split_p < MISMATCH_P


def bucket(visitor: str, salt: str) -> int:
    """The bucket (0 to BUCKETS - 1) of a visitor: SHA-256 of `<salt>:<visitor>`, so that tests of other salts are
    independent."""
    hashed = hashlib.sha256(f"{salt}:{visitor}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(hashed[:8]) % BUCKETS


def is_treated(visitor: str, salt: str, share: float) -> bool:
    """Whether a visitor is of the treatment where that gets `share` of them."""
    return bucket(visitor, salt) < round(share * BUCKETS)


class Visitors:
    """The metric summed up by visitor, for one arm."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, float] = {}

    def add(self, visitor: str, value: float) -> None:
        """One more row of a visitor."""
        self.values[visitor] = self.values.get(visitor, 0.0) + value

    def arm(self) -> Arm:
        """What there is."""
        total = math.fsum(self.values.values())
        return Arm(name=self.name, visitors=len(self.values), total=total, mean=total / max(1, len(self.values)))

    def relative_variance(self) -> float:
        """The variance of the mean, over the mean's square."""
        n, mean = len(self.values), self.arm().mean
        spread = math.fsum((value - mean) ** 2 for value in self.values.values()) / (n - 1)
        return spread / n / mean**2


def uplift(control: Visitors, treatment: Visitors, *, share: float | None = None, level: float = 0.95) -> Uplift:
    """The uplift with its interval by the delta method on the logarithm of the ratio: visitors are many and independent,
    and the interval of a ratio is not even on both sides. `share` is what was planned for the treatment. ValueError where
    an arm has fewer than two visitors or a mean that is not above 0."""
    for arm in (control, treatment):
        if len(arm.values) < 2 or arm.arm().mean <= 0:
            raise ValueError(f"the arm {arm.name!r} needs two visitors or more, and a mean above 0")
    ratio = treatment.arm().mean / control.arm().mean
    error = math.sqrt(control.relative_variance() + treatment.relative_variance())
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    p = math.erfc(abs(math.log(ratio)) / error / math.sqrt(2)) if error else float(ratio == 1)
    return Uplift(
        control=control.arm(),
        treatment=treatment.arm(),
        uplift=ratio - 1,
        low=ratio * math.exp(-reach) - 1,
        high=ratio * math.exp(reach) - 1,
        p=p,
        level=level,
        split_p=None if share is None else _split_p(len(control.values), len(treatment.values), share),
    )


def _split_p(control: int, treatment: int, share: float) -> float:
    """Chi-square with one degree of freedom."""
    n = control + treatment
    chi = (treatment - share * n) ** 2 / (share * n) + (control - (1 - share) * n) ** 2 / ((1 - share) * n)
    return math.erfc(math.sqrt(chi / 2))
