"""Sandboxes: one copy of a world for each session, so that no session sees what another one wrote.

What always holds: at most `capacity` copies are open; past that the one used longest ago is closed, unless a call of it
is under way, and its session begins anew when it comes back.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import msgspec

from harnessctl.runtime.protocols import SandboxedWorld

CAPACITY = 256


class Sandbox(msgspec.Struct, kw_only=True):
    """One session: its world, what its tools keep between calls, and a lock that calls which write hold."""

    world: SandboxedWorld | None
    tools: dict[str, Any] = {}
    writing: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    calls: int = 0


class Sandboxes:
    """Sandboxes of `world` by session; without a world sessions share nothing but the code."""

    def __init__(self, world: SandboxedWorld | None, capacity: int = CAPACITY) -> None:
        self._world = world
        self._capacity = capacity
        self._open: OrderedDict[str, Sandbox] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, session: str) -> Sandbox:
        """The sandbox of a session, a new one if it has none."""
        found = self._open.get(session)
        if found is None:
            found = Sandbox(world=self._world.sandbox() if self._world is not None else None)
            self._open[session] = found
            self._evict()
        self._open.move_to_end(session)
        return found

    def close(self) -> None:
        """Close every copy."""
        while self._open:
            _close(self._open.popitem()[1])

    def _evict(self) -> None:
        idle = [name for name, sandbox in list(self._open.items())[:-1] if not sandbox.calls]
        for name in idle[: max(0, len(self._open) - self._capacity)]:
            _close(self._open.pop(name))


def _close(sandbox: Sandbox) -> None:
    if sandbox.world is not None:
        sandbox.world.close()
