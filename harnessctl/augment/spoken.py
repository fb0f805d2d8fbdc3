"""Spoken: the hooks of a state that tell the model something, and how they may tell it.

What always holds: a hook whose message no model ever reads is not among them: one that ends the request, warns, rewrites
or says a reply of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harnessctl.augment.once import once
from harnessctl.bundle.state import Action, HarnessState
from harnessctl.bundle.text import Text

Role = Literal["tool", "user", "system"]

#: Roles that make a difference at an event, the default first. At `input` a message is the user's whatever it says.
ROLES: dict[str, tuple[Role, ...]] = {
    "pre_model": ("user", "system"),
    "post_model": ("tool", "user", "system"),
    "pre_tool": ("tool", "user", "system"),
    "post_tool": ("tool", "user", "system"),
    "stop": ("user", "system"),
}
#: Where a blocked call goes on with a message in the place of its result.
_BLOCK_EVENTS = ("pre_tool", "post_tool")


@dataclass(slots=True, frozen=True)
class Spoken:
    """One hook's message. `role` is the one that it has, `roles` those that it could have."""

    event: str
    text: Text
    role: Role
    roles: tuple[Role, ...]
    wrap: str | None


@once
def spoken(state: HarnessState) -> dict[str, Spoken]:
    """Hook id to what it tells the model, in the order of the hooks."""
    found: dict[str, Spoken] = {}
    for hook in state.hooks:
        action = hook.otherwise or hook.then
        if action is None or action.message is None or not _is_read(action, hook.event):
            continue
        roles = ROLES.get(hook.event, ("user",))
        role = action.message.role
        if role not in roles:
            role = roles[0]
        found[hook.id] = Spoken(hook.event, action.message.text, role, roles, action.message.wrap)
    return found


def _is_read(action: Action, event: str) -> bool:
    if event == "end":
        return False
    return action.action == "retry" or (action.action == "block" and event in _BLOCK_EVENTS)
