"""hook-role: who a hook's message comes from: the result of the call, a user, or the system [3.2].

At `pre_model` and `stop` no call is being answered, so that only `user` and `system` are told apart; at `input` nothing is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.spoken import spoken
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.variation import HookChange


class HookRole:
    """Targets: hooks whose message a model reads, and whose role makes a difference.

    `system` is left out of `roles` because chat templates of several models refuse a system message that does not stand
    first.
    """

    name = "hook-role"
    dimension: Dimension = "hook"
    stage: Stage = "behave"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"roles": ["tool", "user"]}
    allowed: Mapping[str, Sequence[str]] = {"roles": ("tool", "user", "system")}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return _targets(draft.state)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        hook = spoken(draft.state)[target]
        wished = settings.options.get("roles", self.options["roles"])
        roles = [role for role in hook.roles if role in wished and role != hook.role]
        if not roles:
            return False
        draft.changes.hooks.setdefault(target, HookChange()).role = stream.choice(roles)
        return True


@once
def _targets(state: HarnessState) -> list[str]:
    return [name for name, hook in spoken(state).items() if len(hook.roles) > 1]


OPERATOR = HookRole()
