"""Pending call: one tool call on its way from what the model wrote to its record."""

from __future__ import annotations

from typing import Any

import orjson

from harnessctl.bundle.state import Tool
from harnessctl.records.trajectory import ToolCall, ToolStatus


class PendingCall:
    """A call of one round. `status` is null until its outcome is known; `args` are canonical.

    `content` is what the model reads as the result. `raw` is what the model wrote where that was no JSON object of
    this tool's arguments. `shown` is what stands in the messages as the arguments: what the model wrote, or `{}` where
    that is no JSON object, because endpoints refuse a context that holds one.
    """

    __slots__ = (
        "args",
        "attempts",
        "content",
        "ended_s",
        "error",
        "fault",
        "id",
        "is_answered",
        "is_skipped",
        "name",
        "raw",
        "result",
        "shown",
        "started_s",
        "status",
        "tool",
    )

    def __init__(self, call_id: str, name: str, tool: Tool | None, started_s: float, shown: str) -> None:
        self.id = call_id
        self.name = name
        self.tool = tool
        self.args: dict[str, Any] = {}
        self.raw: str | None = None
        self.status: ToolStatus | None = None
        self.result: Any = None
        self.error: str | None = None
        self.content = ""
        self.shown = shown
        self.is_answered = False
        self.is_skipped = False
        self.attempts = 1
        self.fault: str | None = None
        self.started_s = started_s
        self.ended_s = started_s

    def refuse(self, status: ToolStatus, reason: str) -> None:
        """The call is not run; the model reads why."""
        self.status = status
        self.error = self.content = reason

    def skip(self, reason: str) -> None:
        """The request ended before the call came up: it is not run, and no hook looks at it."""
        self.refuse("blocked", reason)
        self.is_skipped = True

    def record(self, round_number: int) -> ToolCall:
        """The call as the trajectory keeps it; one whose outcome never came was cut off."""
        return ToolCall(
            round=round_number,
            id=self.id,
            name=self.name,
            arguments=self.args,
            status=self.status or "timeout",
            started_s=self.started_s,
            ended_s=self.ended_s,
            result=self.result,
            error=self.error if self.status is not None else "cut off",
            raw=self.raw,
            attempts=self.attempts,
            fault=self.fault,
        )


def text_of(value: Any) -> str:
    """A result, or a part of one, as the model reads it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
