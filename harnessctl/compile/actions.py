"""Actions of hooks: what goes with what, and whether retries fit into the rounds that there are."""

from __future__ import annotations

from typing import Any

from harnessctl.compile.checks import Checker
from harnessctl.compile.events import RETRY_EVENTS, TOOL_EVENTS, WRITABLE
from harnessctl.compile.scope import Scope
from harnessctl.errors import Faults
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.specs import hooks as specs


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
        if hook.check is None or (hook.check.python is None and hook.check.command is None):
            faults.add(
                document.fault(
                    "hook-action",
                    "the action rewrite says nothing to rewrite with",
                    *at,
                    "action",
                    got="rewrite",
                    allowed="rewrite: {target, to}, or a python or command check that gives the value",
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


def _check_retries(document: Document, action: specs.Action, scope: Scope, faults: Faults, *at: PathPart) -> None:
    rounds = scope.limits.get("max_rounds")
    if action.action != "retry" or action.max_retries is None or rounds is None or not scope.harness:
        return
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
