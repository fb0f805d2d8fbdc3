"""Actions of hooks: what goes with what, and whether retries fit into the rounds that there are."""

from __future__ import annotations

from typing import Any

from harnessctl.compile.checks import Checker
from harnessctl.compile.scope import Scope
from harnessctl.errors import Faults
from harnessctl.manifests.events import RETRY_EVENTS, TOOL_EVENTS, WRITABLE
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.specs import hooks as specs

#: Where a program that fails can give the value to rewrite with, by its protocol.
_VALUE_EVENTS = {"claude": ("pre_tool", "post_tool"), "gemini": ("pre_tool", "post_tool", "post_model")}


def check_action(
    document: Document,
    hook: specs.Hook,
    action: specs.Action,
    checker: Checker,
    scope: Scope,
    faults: Faults,
    *at: PathPart,
) -> None:
    """Check one `otherwise` or `then`."""

    def fault(message: str, *below: PathPart, key: bool = False, **parts: Any) -> None:
        faults.add(document.fault("hook-action", message, *at, *below, key=key, **parts))

    event, name = hook.event, action.action
    if event == "end" and name != "warn":
        fault("at the end nothing can be decided any more", "action", got=name, allowed="warn, or observe")
    if name == "retry" and event not in RETRY_EVENTS and event != "end":
        fault(
            f"a retry at {event} gives the model nothing to do again",
            "action",
            got=f"retry at {event}",
            allowed=", ".join(RETRY_EVENTS),
        )
    for field in ("max_retries", "exhausted"):
        if getattr(action, field) is not None and name != "retry":
            fault(f"{field} goes with retry only", field, key=True, got=name, allowed="action: retry")
    if action.exhausted is not None and action.max_retries is None:
        fault("without max_retries a retry is never exhausted", "exhausted", key=True, hint="add max_retries")
    uses_fallback = name == "fallback" or action.exhausted == "fallback"
    if uses_fallback and action.fallback is None:
        fault(
            "the fallback is not given",
            "action" if name == "fallback" else "exhausted",
            got="fallback",
            hint="add fallback: {reply: ..., route: ...}",
        )
    if action.fallback is not None and not uses_fallback:
        fault("a fallback that no action uses", "fallback", key=True, got=name, allowed="action or exhausted: fallback")
    _check_rewrite(document, hook, action, checker, faults, *at)
    if action.message is not None:
        if action.message.role == "tool" and event not in TOOL_EVENTS:
            fault(
                f"there is no tool call at {event} that a message could answer",
                "message",
                "role",
                got="tool",
                allowed="user | system",
            )
        if name in ("rewrite", "warn", "stop_loop", "fallback") and action.exhausted is None:
            fault(
                f"nobody reads the message of the action {name}",
                "message",
                key=True,
                got=name,
                allowed="block | retry",
                hint="use description for people",
                severity="warning",
            )
    _check_retries(document, action, scope, faults, *at)


def _check_rewrite(
    document: Document, hook: specs.Hook, action: specs.Action, checker: Checker, faults: Faults, *at: PathPart
) -> None:
    writable = WRITABLE.get(hook.event)
    if action.action != "rewrite":
        if action.rewrite is not None:
            faults.add(
                document.fault(
                    "hook-action",
                    "a rewrite that no action uses",
                    *at,
                    "rewrite",
                    key=True,
                    got=action.action,
                    allowed="action: rewrite",
                )
            )
        return
    if writable is None:
        faults.add(
            document.fault(
                "hook-action",
                f"nothing can be rewritten at {hook.event}",
                *at,
                "action",
                got="rewrite",
                allowed="rewrite at " + ", ".join(WRITABLE),
            )
        )
    if action.rewrite is None:
        if not _gives_value(hook.check, hook.event):
            faults.add(
                document.fault(
                    "hook-action",
                    "the action rewrite says nothing to rewrite with",
                    *at,
                    "action",
                    got="rewrite",
                    allowed="rewrite: {target, to}, or a check that gives the value: python; or command in a protocol "
                    "that can at this event (claude: pre_tool, post_tool; gemini: post_model too)",
                )
            )
        return
    if writable is not None and action.rewrite.target != writable:
        faults.add(
            document.fault(
                "hook-target",
                f"this cannot be rewritten at {hook.event}",
                *at,
                "rewrite",
                "target",
                got=action.rewrite.target,
                allowed=writable,
            )
        )
    checker.template(*at, "rewrite", "to")


def _gives_value(check: specs.Check | None, event: str) -> bool:
    """Whether a check that fails may give the value that its target is to become."""
    if check is None:
        return False
    if check.command is not None:
        return event in _VALUE_EVENTS.get(check.command.protocol, ())
    return check.python is not None or any(_gives_value(part, event) for part in check.all or ())


def _check_retries(document: Document, action: specs.Action, scope: Scope, faults: Faults, *at: PathPart) -> None:
    rounds = scope.limits.get("max_rounds")
    if action.action != "retry" or action.max_retries is None or rounds is None or not scope.harness:
        return
    if document.get(*at[:-1], "event") == "pre_model":
        return  # the model is told before it answers: no round is used
    needed = action.max_retries + 1 + (1 if scope.require_skill else 0)
    if needed > rounds:
        first = "one round loads a skill, one replies" if scope.require_skill else "one round replies"
        faults.add(
            document.fault(
                "hook-retries",
                "the retries do not fit into the rounds",
                *at,
                "max_retries",
                got=f"{action.max_retries} retries; {first}: {needed} rounds",
                allowed=f"max_rounds: {rounds:g}",
                hint="raise max_rounds or lower max_retries",
                severity="warning",
            )
        )
