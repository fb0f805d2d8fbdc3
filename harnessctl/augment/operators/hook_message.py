"""hook-message: what hooks tell the model, in other words [3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.spoken import spoken
from harnessctl.augment.stream import Stream


class HookMessage:
    """Targets: hooks whose message a model reads."""

    name = "hook-message"
    dimension: Dimension = "hook"
    stage: Stage = "reword"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return tuple(spoken(draft.state))

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        new = draft.reworded(spoken(draft.state)[target].text, "message", stream)
        if new is None:
            return False
        draft.changes.texts[f"hooks/{target}/message"] = new
        return True


OPERATOR = HookMessage()
