"""Events of hooks: what may be looked at, rewritten, named and decided at each, for the compiler and the runtime."""

from __future__ import annotations

#: What checks may look at; the first is the target where a check names none.
READABLE: dict[str, tuple[str, ...]] = {
    "input": ("message",),
    "pre_model": ("message",),
    "post_model": ("output", "message"),
    "pre_tool": ("args", "message", "output"),
    "post_tool": ("result", "args", "message", "output"),
    "stop": ("reply", "message", "output"),
    "end": ("reply", "message", "output"),
}
#: What a rewrite may replace.
WRITABLE = {"input": "message", "post_model": "output", "pre_tool": "args", "post_tool": "result", "stop": "reply"}
#: Names in expressions at every event, and those that an event adds.
COMMON_NAMES = ("context", "limits", "skills_loaded", "round", "session", "calls", "message")
EVENT_NAMES: dict[str, tuple[str, ...]] = {
    "input": (),
    "pre_model": (),
    "post_model": ("output",),
    "pre_tool": ("args", "tool", "output"),
    "post_tool": ("result", "status", "args", "tool", "output"),
    "stop": ("reply", "output"),
    "end": ("reply", "output"),
}
TOOL_EVENTS = ("pre_tool", "post_tool")
#: Where a retry tells the model something before it goes on. At all but pre_model that takes another round.
RETRY_EVENTS = ("pre_model", "post_model", "pre_tool", "post_tool", "stop")


def names_at(event: str) -> tuple[str, ...]:
    """Every name that an expression sees at `event`."""
    return COMMON_NAMES + EVENT_NAMES[event]
