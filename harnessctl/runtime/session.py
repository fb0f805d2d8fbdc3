"""Sessions: what one turn of a conversation leaves to the next, in a store of bounded size.

A session's state changes only when a turn has ended, so that a cancelled turn leaves no trace (but for what python
tools wrote into their own dict). Turns of one session wait for each other, in the order in which they were begun.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import msgspec

from harnessctl.runtime.protocols import SandboxedWorld
from harnessctl.runtime.scene import SessionState

DEFAULT_CAPACITY = 10_000


class Session(msgspec.Struct, kw_only=True):
    """One session. `lock` is held while a turn is under way.

    `prefix_ids` are the ids of the first `prefix_messages` messages as the last turn left them, for turns that have the
    same `prefix_key`. `world` is the session's own copy, where requests are isolated.
    """

    state: SessionState = msgspec.field(default_factory=SessionState)
    prefix_ids: list[int] | None = None
    prefix_messages: int = 0
    prefix_key: str = ""
    world: SandboxedWorld | None = None
    lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)


class SessionStore:
    """Sessions by name. Past `capacity` the one used longest ago is forgotten, unless a turn of it is under way."""

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        if capacity < 1:
            raise ValueError("a session store holds at least one session")
        self._capacity = capacity
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, name: str) -> bool:
        return name in self._sessions

    def get(self, name: str) -> Session:
        """The session of that name, a new one if it is not known; it becomes the last used."""
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session()
            self._evict()
        else:
            self._sessions.move_to_end(name)
        return session

    def forget(self, name: str) -> bool:
        """Drop a session; true when it was known."""
        return self._sessions.pop(name, None) is not None

    def _evict(self) -> None:
        excess = len(self._sessions) - self._capacity
        if excess > 0:
            newest = next(reversed(self._sessions))
            idle = (n for n, s in self._sessions.items() if n != newest and not s.lock.locked())
            for name in [name for name, _ in zip(idle, range(excess), strict=False)]:
                del self._sessions[name]


def turn_history(messages: list[dict[str, Any]], reply: str, not_run: str) -> tuple[list[dict[str, Any]], bool]:
    """A turn's messages as the next turn sees them, and whether none of them was changed.

    Calls of the last message that got no result get `not_run`. Where another text was said than the model's last (a
    rewrite, a fallback), that text stands in its place; where the loop ended on a tool, it stands after it.
    """
    history = list(messages)
    last = next((i for i in range(len(history) - 1, -1, -1) if history[i]["role"] == "assistant"), None)
    if last is not None:
        answered = {m["tool_call_id"] for m in history[last + 1 :] if m["role"] == "tool"}
        calls = [call["id"] for call in history[last].get("tool_calls", ())]
        history += [{"role": "tool", "tool_call_id": c, "content": not_run} for c in calls if c not in answered]
    if not reply:
        return history, True
    if not history or history[-1]["role"] != "assistant":
        return [*history, {"role": "assistant", "content": reply}], True
    if history[-1]["content"] == reply:
        return history, True
    history[-1] = {"role": "assistant", "content": reply}
    return history, False
