"""skill-synthetic: skills of the same trade on matters that nobody asks about [3.2]."""

from __future__ import annotations

from harnessctl.augment.skill_pool import PoolOperator

OPERATOR = PoolOperator("skill-synthetic", "synthetic", count=(1, 3))
