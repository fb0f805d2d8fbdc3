"""Ending: how a request ends. Every part of the loop that may end it returns one, or None to go on."""

from __future__ import annotations

import msgspec

from harnessctl.records.trajectory import Route, StopReason
from harnessctl.runtime.scene import Verdict


class Ending(msgspec.Struct, frozen=True):
    """Nothing is said where `reply` is empty; the route is then `silent`."""

    stop: StopReason
    reply: str = ""
    route: Route = "silent"
    error: str | None = None


def ending_of(verdict: Verdict, event: str) -> Ending | None:
    """How a request ends by the hooks of `event`, or None where it goes on (`pass` and `retry`).

    A block says nothing; a stop says nothing and is a choice, not a fault, when it comes before any model call; a
    fallback says its own reply.
    """
    if verdict.action == "fallback":
        return Ending("hook_blocked", verdict.reply, verdict.route if verdict.reply else "silent", _by(verdict, event))
    if verdict.action == "stop_loop":
        return Ending("silent" if event == "input" else "hook_blocked", error=_by(verdict, event))
    if verdict.action == "block":
        return Ending("hook_blocked", error=_by(verdict, event))
    return None


def _by(verdict: Verdict, event: str) -> str:
    said = f": {verdict.message}" if verdict.message else ""
    return f"hook {verdict.hook} at {event}: {verdict.action}{said}"
