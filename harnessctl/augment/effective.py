"""Effective: limits of a variant under way."""

from __future__ import annotations

from harnessctl.augment.operator import Draft
from harnessctl.bundle.state import Number
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS


def effective(draft: Draft, limit: str) -> Number | None:
    """The value of a limit in the variant so far; the default where the state has none, or None."""
    moved = draft.changes.limits.get(limit)
    if moved is not None:
        return moved
    held = draft.state.limits.get(limit)
    return held.value if held is not None else DEFAULT_LIMITS.get(limit)
