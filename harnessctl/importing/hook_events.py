"""Hook events: what the events of coding agents are here, what a refusal at each does, and which have no counterpart.

| here      | Claude Code                      | Gemini CLI  | Cursor             | exit code 2 there -> action here |
|-----------|----------------------------------|-------------|--------------------|----------------------------------|
| input     | UserPromptSubmit                 | BeforeAgent | beforeSubmitPrompt | the prompt is dropped -> block |
| pre_tool  | PreToolUse                       | BeforeTool  | preToolUse         | the call is not made -> block |
| post_tool | PostToolUse, PostToolUseFailure  |             | postToolUse        | the model is told why -> retry |
| post_tool |                                  | AfterTool   |                    | the result is hidden -> block |
| stop      | Stop                             | AfterAgent  | stop               | the model goes on -> retry, then warn |
| pre_model |                                  | BeforeModel |                    | the turn ends -> block |
| post_model|                                  | AfterModel  |                    | the turn ends -> block |
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from harnessctl.manifests.specs.hooks import Event

Dialect = Literal["claude", "gemini", "cursor"]


class Counterpart(NamedTuple):
    """The event here; `failed` for calls that did not succeed; `action` is what `otherwise` says."""

    event: Event
    action: dict[str, Any]
    failed: bool = False


_BLOCK: dict[str, Any] = {"action": "block"}
#: A retry that is used up lets the reply go: those agents never withhold an answer for a stop hook.
_RETRY: dict[str, Any] = {"action": "retry", "max_retries": 2, "exhausted": "warn"}
_TELL: dict[str, Any] = {"action": "retry", "max_retries": 2, "exhausted": "warn"}

EVENTS: dict[Dialect, dict[str, Counterpart]] = {
    "claude": {
        "UserPromptSubmit": Counterpart("input", _BLOCK),
        "PreToolUse": Counterpart("pre_tool", _BLOCK),
        "PostToolUse": Counterpart("post_tool", _TELL),
        "PostToolUseFailure": Counterpart("post_tool", _TELL, failed=True),
        "Stop": Counterpart("stop", _RETRY),
    },
    "gemini": {
        "BeforeAgent": Counterpart("input", _BLOCK),
        "BeforeModel": Counterpart("pre_model", _BLOCK),
        "AfterModel": Counterpart("post_model", _BLOCK),
        "BeforeTool": Counterpart("pre_tool", _BLOCK),
        "AfterTool": Counterpart("post_tool", _BLOCK),
        "AfterAgent": Counterpart("stop", _RETRY),
    },
    "cursor": {
        "beforeSubmitPrompt": Counterpart("input", _BLOCK),
        "preToolUse": Counterpart("pre_tool", _BLOCK),
        "postToolUse": Counterpart("post_tool", _TELL),
        "postToolUseFailure": Counterpart("post_tool", _TELL, failed=True),
        "stop": Counterpart("stop", _RETRY),
    },
}

_SESSION = "a request has no session that starts or ends: set things up in the tools, or look at `input` and `end`"
_COMPACT = "the context of a request is never compacted"
_SUBAGENT = "there are no subagents here"
_PERMISSION = "there is nobody to ask for a permission here"
_FILES = "it is about files, shells and editors of a coding agent, which this project's agent does not have"

#: Why an event is not carried over. Cursor's names begin with a small letter.
WITHOUT_COUNTERPART: dict[str, str] = {
    "SessionStart": _SESSION,
    "SessionEnd": _SESSION,
    "Setup": _SESSION,
    "Notification": "nobody waits at a terminal to be notified",
    "PreCompact": _COMPACT,
    "PostCompact": _COMPACT,
    "PreCompress": _COMPACT,
    "SubagentStart": _SUBAGENT,
    "SubagentStop": _SUBAGENT,
    "TeammateIdle": _SUBAGENT,
    "TaskCreated": _SUBAGENT,
    "TaskCompleted": _SUBAGENT,
    "PermissionRequest": _PERMISSION,
    "PermissionDenied": _PERMISSION,
    "BeforeToolSelection": "the tools on offer are the harness's and are not chosen by a hook",
    "BeforeShellExecution": _FILES,
    "AfterShellExecution": _FILES,
    "BeforeReadFile": _FILES,
    "AfterFileEdit": _FILES,
    "BeforeTabFileRead": _FILES,
    "AfterTabFileEdit": _FILES,
    "FileChanged": _FILES,
    "CwdChanged": _FILES,
    "WorktreeCreate": _FILES,
    "WorktreeRemove": _FILES,
    "ConfigChange": _FILES,
    "InstructionsLoaded": _FILES,
    "BeforeMCPExecution": "MCP tools are tools like others here: look at `pre_tool`",
    "AfterMCPExecution": "MCP tools are tools like others here: look at `post_tool`",
    "AfterAgentResponse": "the reply is looked at before it is said here: see `stop`",
    "AfterAgentThought": "what a model thinks is kept apart and given to no hook",
    "StopFailure": "a model that fails ends the request with its own reason here",
}


def dialect_of(events: set[str], document: dict[str, Any]) -> Dialect:
    """Whose hooks these are, by the names of their events; Claude Code's where nothing says otherwise."""
    if events & {"SessionStart", "SessionEnd", "Notification"} == events:
        return "claude"
    if any(name[:1].islower() for name in events) or document.get("version") == 1:
        return "cursor"
    return "gemini" if events & EVENTS["gemini"].keys() else "claude"


def reason_without(event: str) -> str:
    """Why an event is not carried over."""
    reason = WITHOUT_COUNTERPART.get(event[:1].upper() + event[1:])
    return reason or "it is not an event that is known here"
