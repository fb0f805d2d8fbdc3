"""Scene: the mutable state of one request, which the loop moves forward and hooks look at and may change.

All names in it are canonical, whatever the model was shown.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from harnessctl.bundle.state import Skill, Tool
from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import HookDecision, ToolCall
from harnessctl.runtime.protocols import World


class SessionState(msgspec.Struct, kw_only=True):
    """What earlier turns of a session left. Kept parts are those that the harness names under `session.keep`.

    `tools` is the dict that python tools own (see ToolContext.session).
    """

    turns: int = 0
    calls: list[ToolCall] = []
    skills: list[str] = []
    history: list[dict[str, Any]] = []
    tools: dict[str, Any] = {}


class Scene(msgspec.Struct, kw_only=True):
    """One request under way.

    Targets of hooks: `message` (viewer text, messages joined by newlines), `output` (the model's text),
    `args` and `result` (of the call under way), `reply` (the proposed reply). `tool`, `args`, `status` are set only at
    pre_tool and post_tool. `calls` are this request's finished tool calls, in order. `deadline` and `started` are on
    time.monotonic().
    """

    request: CommentInput
    context: dict[str, Any]
    limits: dict[str, int | float]
    session: SessionState
    world: World | None
    started: float
    deadline: float
    message: str = ""
    messages: list[dict[str, Any]] = []
    round: int = 0
    skills: list[Skill] = []
    calls: list[ToolCall] = []
    output: str = ""
    tool: Tool | None = None
    args: dict[str, Any] = {}
    result: Any = None
    status: str | None = None
    reply: str = ""
    decisions: list[HookDecision] = []
    warnings: list[str] = []
    retries: dict[str, int] = {}


class Verdict(msgspec.Struct, kw_only=True):
    """What the hooks of one event decided together. Rewrites have been applied to the scene already.

    `message` is in surface names, wrapped; `role` is how it is shown to the model: `tool` is in the result of the call,
    or of the calls that were not run, and as a user's words where there is none. For `fallback`, `reply` and `route`
    are what is said instead.
    """

    action: Literal["pass", "block", "retry", "stop_loop", "fallback"]
    hook: str | None = None
    message: str = ""
    role: Literal["tool", "user", "system"] = "user"
    reply: str = ""
    route: Literal["public", "private", "silent"] = "public"


PASS = Verdict(action="pass")
