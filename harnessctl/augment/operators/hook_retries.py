"""hook-retries: how often a hook sends the model back [3.2].

What always holds: at least one retry, and no more than fit into the variant's rounds beside the round that loads a skill
and the one that replies; a hook that retries without end goes on so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.effective import effective
from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.variation import HookChange

#: From and to, where the envelope says nothing; manifests allow 1 to 10.
COUNT = (1, 3)
MOST = 10


class HookRetries:
    """Targets: hooks whose action is a bounded retry."""

    name = "hook-retries"
    dimension: Dimension = "hook"
    stage: Stage = "behave"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset({"count"})

    def targets(self, draft: Draft) -> Sequence[str]:
        return tuple(_retries(draft.state))

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        old, event = _retries(draft.state)[target]
        low, high = (int(bound) for bound in settings.count or COUNT)
        high = min(high, MOST)
        rounds = effective(draft, "max_rounds")
        if rounds is not None and event != "pre_model":
            high = min(high, int(rounds) - 1 - (draft.state.require_skill == "reply"))
        counts = [count for count in range(max(low, 1), high + 1) if count != old]
        if not counts:
            return False
        draft.changes.hooks.setdefault(target, HookChange()).max_retries = stream.choice(counts)
        return True


@once
def _retries(state: HarnessState) -> dict[str, tuple[int, str]]:
    """(retries, event) of each hook that retries a number of times."""
    found: dict[str, tuple[int, str]] = {}
    for hook in state.hooks:
        action = hook.otherwise or hook.then
        if action is not None and action.action == "retry" and action.max_retries is not None and hook.event != "end":
            found[hook.id] = (action.max_retries, hook.event)
    return found


OPERATOR = HookRetries()
