"""hook-wrap: the tag around a hook's message, another one or none [3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.spoken import spoken
from harnessctl.augment.stream import Stream
from harnessctl.bundle.variation import HookChange

#: What a tag may be called, as in the manifests of hooks.
TAG = r"[a-z][a-z0-9_-]*"
TAGS = (
    "notice",
    "reminder",
    "system-reminder",
    "feedback",
    "correction",
    "check",
    "guard",
    "policy",
    "review",
    "harness",
    "hook",
    "validator",
    "warning",
    "note",
    "advice",
    "message",
)


class HookWrap:
    """Targets: hooks whose message a model reads. `tags` are drawn from evenly; no tag is one more where there was one."""

    name = "hook-wrap"
    dimension: Dimension = "hook"
    stage: Stage = "behave"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"tags": list(TAGS)}
    patterns: Mapping[str, str] = {"tags": TAG}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return tuple(spoken(draft.state))

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        old = spoken(draft.state)[target].wrap
        tags = [tag for tag in settings.options.get("tags", TAGS) if tag != old]
        if old is not None:
            tags.append("")
        if not tags:
            return False
        draft.changes.hooks.setdefault(target, HookChange()).wrap = stream.choice(tags)
        return True


OPERATOR = HookWrap()
