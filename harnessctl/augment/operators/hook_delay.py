"""hook-delay: a hook that takes its time and decides nothing. Beyond the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.embed import embed, fresh_hook_id
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import Action, Hook

EVENTS = ("pre_model", "post_model", "pre_tool", "post_tool", "stop")
#: Delays that a hook may have, in milliseconds; each is a function of the module, whose text is always the same.
DELAYS_MS = (1, 2, 5, 10, 20, 50, 100)
MODULE = "harnessctl_hook_delay"
SOURCE = (
    '''"""Hooks that wait some milliseconds and let everything pass; made by augmentation."""

import asyncio


def _waiting(milliseconds):
    async def wait(names):
        await asyncio.sleep(milliseconds / 1000)
        return True

    return wait


'''
    + "\n".join(f"wait_{ms} = _waiting({ms})" for ms in DELAYS_MS)
    + "\n"
)


class HookDelay:
    """Target: `hooks`. An observer waits beside the request, a check holds it up."""

    name = "hook-delay"
    dimension: Dimension = "hook"
    stage: Stage = "behave"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"least_ms": 2, "most_ms": 10, "events": list(EVENTS), "ways": ["check", "observe"]}
    allowed: Mapping[str, Sequence[str]] = {"events": EVENTS, "ways": ("check", "observe")}
    bounds: Mapping[str, tuple[float, float]] = dict.fromkeys(("least_ms", "most_ms"), (DELAYS_MS[0], DELAYS_MS[-1]))
    spans: Sequence[tuple[str, str]] = (("least_ms", "most_ms"),)
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return ("hooks",)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        given = {**self.options, **settings.options}
        delays = [delay for delay in DELAYS_MS if given["least_ms"] <= delay <= given["most_ms"]]
        if not (delays and given["events"] and given["ways"]):
            return False
        function = f"{embed(draft, MODULE, SOURCE)}:wait_{stream.choice(delays)}"
        hook = Hook(id=fresh_hook_id(draft, "takes-its-time"), event=stream.choice(given["events"]), on_error="pass")
        if stream.choice(given["ways"]) == "observe":
            hook.observe = {"python": function}
        else:
            hook.check, hook.otherwise = {"python": function}, Action(action="warn")
        draft.changes.added_hooks.append(hook)
        return True


OPERATOR = HookDelay()
