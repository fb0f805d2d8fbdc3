"""skill-noise: skills of other trades [3.2]."""

from __future__ import annotations

from harnessctl.augment.skill_pool import PoolOperator

OPERATOR = PoolOperator("skill-noise", "noise", count=(1, 2))
