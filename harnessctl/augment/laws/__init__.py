"""Laws a to e and h of augmentation, checked on each variant [3.2]. f and g are of many variants: see tests and evaluate/."""

from harnessctl.augment.laws.audit import Audit, check_laws
from harnessctl.augment.laws.broken import LAWS, Broken, Law

__all__ = ["LAWS", "Audit", "Broken", "Law", "check_laws"]
