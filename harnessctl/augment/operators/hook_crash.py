"""hook-crash: a hook whose code fails each time, and which lets everything pass when it does. Beyond the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.embed import embed, fresh_hook_id
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import Action, Hook

EVENTS = ("input", "pre_model", "post_model", "pre_tool", "post_tool", "stop", "end")
MODULE = "harnessctl_hook_crash"
FUNCTIONS = ("missing_key", "no_number", "gives_nothing", "out_of_service")
SOURCE = '''"""Hooks that fail; made by augmentation. The record names them, and nothing else comes of it."""


def missing_key(names):
    return names["no such name"]


def no_number(names):
    return int("not a number") > 0


def gives_nothing(names):
    return None


def out_of_service(names):
    raise RuntimeError("the service that this hook asks is away")


for function in (missing_key, no_number, gives_nothing, out_of_service):
    function.inline = True
'''


class HookCrash:
    """Target: `hooks`."""

    name = "hook-crash"
    dimension: Dimension = "hook"
    stage: Stage = "behave"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"events": list(EVENTS)}
    allowed: Mapping[str, Sequence[str]] = {"events": EVENTS}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return ("hooks",)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        events = settings.options.get("events", EVENTS)
        if not events:
            return False
        draft.changes.added_hooks.append(
            Hook(
                id=fresh_hook_id(draft, "out-of-order"),
                event=stream.choice(events),
                check={"python": f"{embed(draft, MODULE, SOURCE)}:{stream.choice(FUNCTIONS)}"},
                otherwise=Action(action="warn"),
                on_error="pass",
            )
        )
        return True


OPERATOR = HookCrash()
