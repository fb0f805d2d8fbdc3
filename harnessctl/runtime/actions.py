"""Actions: what a hook does once it has been decided, and what the model is told.

What the model reads is the hook's message and, after a line break, the reason of a python, command or judge check; with
no message the reason alone, whatever the check; with neither, a sentence that names the hook. A reason is written with
canonical names: those in code spans are shown by their surface names, like those of every message. Bare words stay.
"""

from __future__ import annotations

from typing import Any, Literal

import jinja2
import msgspec
import orjson

from harnessctl.bundle.sandbox import compile_template
from harnessctl.bundle.state import Action, Hook
from harnessctl.errors import HookError
from harnessctl.manifests.events import WRITABLE
from harnessctl.manifests.specs.hooks import ActionName, Fallback
from harnessctl.records.trajectory import HookDecision
from harnessctl.runtime.checks.check import Moment, Outcome, Setting, read_spec
from harnessctl.runtime.outside import clean_text
from harnessctl.runtime.scene import PASS, Verdict
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tools.outcome import json_fault

MAX_REASON_CHARS = 2000
_NO_FALLBACK = Fallback()


class Actor:
    """Carries one hook's action out. HookError at once when the action cannot be made."""

    def __init__(self, hook: Hook, action: Action | None, setting: Setting, surface: SurfaceView) -> None:
        self._hook = hook.id
        self._event = hook.event
        self._action = action or Action(action="warn")
        self._surface = surface
        self._kind: ActionName = self._action.action
        if self._event == "end":
            self._kind = "warn"
        if self._kind == "rewrite" and self._event not in WRITABLE:
            raise HookError(f"nothing can be rewritten at {self._event}")
        self._rewrite = _rewrite(self._action.rewrite, self._event) if self._kind == "rewrite" else None
        if "fallback" in (self._kind, self._action.exhausted) and self._action.fallback is None:
            raise HookError("the action is fallback and no fallback is given")
        self._fallback = read_spec(self._action.fallback, Fallback) if self._action.fallback else _NO_FALLBACK

    def decide(self, moment: Moment, outcome: Outcome, decision: HookDecision) -> Verdict:
        """What follows from a check's outcome: recorded in `decision`, rewrites applied, the verdict returned."""
        decision.reason = recordable(outcome.reason or outcome.warning) or None
        if outcome.stop and self._event != "end":
            decision.decision = "stop_loop"
            return Verdict(action="stop_loop", hook=self._hook)
        if outcome.ok:
            if outcome.warning:
                decision.decision = "warn"
            target = WRITABLE.get(self._event)
            if target is not None and outcome.value is not msgspec.UNSET and _put(moment, target, outcome.value):
                decision.decision = "rewrite"
            return PASS
        return self._act(moment, outcome, decision)

    def refuse(self) -> Verdict:
        """The verdict of a hook that could not run and blocks on errors; the cause is not for the model."""
        if self._event == "end":
            return PASS
        return Verdict(action="block", hook=self._hook, message=self._wrapped(_sentence(self._hook)), role=self._role())

    def _act(self, moment: Moment, outcome: Outcome, decision: HookDecision) -> Verdict:
        kind: ActionName = self._kind
        if kind == "retry":
            retries = moment.scene.retries
            used = retries.get(self._hook, 0)
            if self._action.max_retries is None or used < self._action.max_retries:
                retries[self._hook] = used + 1
            else:
                kind = self._action.exhausted or "block"
                after = f"after {used} {'retry' if used == 1 else 'retries'}"
                decision.reason = f"{decision.reason}; {after}" if decision.reason else after
        if kind == "rewrite":
            self._replace(moment, outcome)
        decision.decision = kind
        if kind in ("rewrite", "warn"):
            return PASS
        if kind == "stop_loop":
            return Verdict(action="stop_loop", hook=self._hook)
        if kind == "fallback":
            return Verdict(action="fallback", hook=self._hook, reply=self._fallback.reply, route=self._fallback.route)
        return Verdict(
            action="retry" if kind == "retry" else "block",
            hook=self._hook,
            message=self._said(outcome),
            role=self._role(),
        )

    def _replace(self, moment: Moment, outcome: Outcome) -> None:
        target = WRITABLE[self._event]
        if self._rewrite is None:
            if outcome.value is msgspec.UNSET:
                raise HookError("there is nothing to rewrite with: no `rewrite`, and the check gave no value")
            _put(moment, target, outcome.value)
            return
        try:
            text = self._rewrite.render(moment.names)
        except Exception as error:  # an author's template may fail in any way
            raise HookError(f"rewrite: {type(error).__name__}: {error}") from error
        _put(moment, target, _parsed(text, target, moment))

    def _said(self, outcome: Outcome) -> str:
        """What the model is told, in surface names."""
        message = self._action.message
        parts: list[str] = []
        if message is not None:
            parts.append(self._surface.render(message.text))
        if outcome.reason and (outcome.told or message is None):
            parts.append(self._surface.shown(recordable(outcome.reason)))
        return self._wrapped("\n".join(parts) or _sentence(self._hook))

    def _wrapped(self, text: str) -> str:
        wrap = self._action.message.wrap if self._action.message is not None else None
        return f"<{wrap}>\n{text}\n</{wrap}>" if wrap else text

    def _role(self) -> Literal["tool", "user", "system"]:
        role = self._action.message.role if self._action.message is not None else None
        return role or ("tool" if self._event in ("post_model", "pre_tool", "post_tool") else "user")


def recordable(text: str) -> str:
    """A text of a hook's own making, bounded and cleaned as a viewer's text is, for the model and for the record."""
    return clean_text(text, MAX_REASON_CHARS, [])


def _sentence(hook: str) -> str:
    return f"Stopped by the hook {hook}."


def _rewrite(rewrite: dict[str, str] | None, event: str) -> jinja2.Template | None:
    """The compiled template of a rewrite; HookError when it is none or its target is not the event's."""
    if rewrite is None:
        return None
    if rewrite.get("target") != WRITABLE[event]:
        raise HookError(f"{rewrite.get('target')} cannot be rewritten at {event}", hint=f"allowed: {WRITABLE[event]}")
    try:
        return compile_template(rewrite["to"])
    except (jinja2.TemplateSyntaxError, KeyError) as error:
        raise HookError(f"rewrite: not a template: {error}") from error


def _parsed(text: str, target: str, moment: Moment) -> Any:
    """Rendered text as a value of the target: arguments are a JSON object; a result is JSON where it is JSON and the
    result that it replaces is not text."""
    if target == "args" or (target == "result" and not isinstance(moment.scene.result, str)):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            if target == "args":
                raise HookError(f"rewrite: the arguments are not JSON: {error}: {text[:80]!r}") from error
    return text


def _put(moment: Moment, target: str, value: Any) -> bool:
    """Make `value` the target, and say whether that changes it; HookError when it is not of the target's type, or is
    not JSON and would fit in no record."""
    wanted = {"args": dict, "result": object}.get(target, str)
    if not isinstance(value, wanted):
        what = "object" if wanted is dict else "text"
        raise HookError(f"{target} would become {ascii(value)[:80]}, which is no {what}")
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, RecursionError) as error:
        raise HookError(f"{target} would become {ascii(value)[:80]}, which is not JSON: {error}") from error
    if b"null" in encoded and (fault := json_fault(value)):
        raise HookError(f"{target} would not be JSON: {fault}")
    try:
        if encoded == orjson.dumps(getattr(moment.scene, target), option=orjson.OPT_SORT_KEYS):
            return False
    except TypeError:  # what stands there now is not JSON: it is replaced
        pass
    setattr(moment.scene, target, orjson.loads(orjson.dumps(value)))
    moment.known = None
    return True
