"""Written calls: tool calls as the model wrote them, read into canonical names. Nothing is repaired."""

from __future__ import annotations

from typing import Any

from harnessctl.bundle.state import Tool
from harnessctl.runtime.model_json import read_json
from harnessctl.runtime.notices import Notices
from harnessctl.runtime.pending import PendingCall
from harnessctl.runtime.protocols import ModelToolCall
from harnessctl.runtime.surface import SurfaceView


class CallReader:
    """Reads calls for one bundle; what cannot be read is refused with a notice for the model."""

    def __init__(self, surface: SurfaceView, notices: Notices) -> None:
        self._surface = surface
        self._notices = notices
        self._by_name: dict[str, Tool] = {tool.name: tool for tool in surface.state.tools}

    def read(self, calls: list[ModelToolCall], round_number: int, now: float) -> list[PendingCall]:
        """The calls of one message; `now` is in seconds since the request began.

        A call without an id, or with one that another call of the message has, gets one here.
        """
        ids: set[str] = set()
        pending: list[PendingCall] = []
        for number, call in enumerate(calls):
            call_id = call.id if call.id and call.id not in ids else f"call_{round_number}_{number}"
            ids.add(call_id)
            pending.append(self._read(call, call_id, now))
        return pending

    def _read(self, call: ModelToolCall, call_id: str, now: float) -> PendingCall:
        """No text at all stands for no arguments, which is how some endpoints hand over a call without any."""
        name = self._surface.tool_to_canonical(call.name)
        text = call.arguments if call.arguments.strip() else "{}"
        pending = PendingCall(call_id, name or call.name, self._by_name[name] if name else None, now, text)
        args, cause = _object(text)
        if cause:
            pending.raw, pending.shown = text, "{}"
        if name is None:
            pending.args = args
            pending.refuse("invalid", self._notices.unknown_tool(call.name))
        elif cause:
            pending.refuse("invalid", self._notices.broken_arguments(call.name, text, cause))
        else:
            self._take_arguments(pending, name, args, text)
        return pending

    def _take_arguments(self, pending: PendingCall, name: str, args: dict[str, Any], text: str) -> None:
        canonical = self._surface.args_to_canonical(name, args)
        if canonical is None:
            pending.raw = text
            pending.refuse("invalid", self._notices.hidden_argument(name))
            return
        pending.args = canonical
        if pending.tool is self._surface.load_skill:
            skill = args.get(self._surface.load_skill_shown)
            if not isinstance(skill, str) or self._surface.skill_to_canonical(skill) is None:
                pending.refuse("invalid", self._notices.unknown_skill(skill))


def _object(text: str) -> tuple[dict[str, Any], str]:
    """(the JSON object in `text`, why there is none)."""
    value, cause = read_json(text)
    if cause:
        return {}, cause
    return (value, "") if isinstance(value, dict) else ({}, f"it is {_kind(value)}")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "a number"
