"""Hooks: the hooks of one manifest to the state's Hook."""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.bundle import state
from harnessctl.compile.actions import check_action
from harnessctl.compile.checks import Checker
from harnessctl.compile.code import CodeFinder
from harnessctl.compile.references import text_of
from harnessctl.compile.scope import Scope, listed
from harnessctl.compile.sources import header
from harnessctl.compile.unit import Bound
from harnessctl.errors import Faults
from harnessctl.manifests.events import TOOL_EVENTS
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.locate import SourceFile
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs import hooks as specs

DEFAULT_TIMEOUT_S = state.Hook(id="", event="end").timeout_s
_FORMS = "check with otherwise, then, or observe"


def read(file: SourceFile, data: bytes, faults: Faults) -> Document | None:
    """The manifest in the bytes, when it is one of hooks."""
    return header(file, data, "Hooks", specs.Hooks, ("hooks",), faults)


def outline(file: SourceFile, parsed: Document) -> dict[str, Any]:
    """Id, version, order and place of each hook."""
    hooks = []
    for n, hook in enumerate(parsed.get("hooks", default=[])):
        if isinstance(hook, dict) and isinstance(hook.get("id"), str):
            hooks.append(
                {
                    "id": hook["id"],
                    "version": str(hook.get("version", "1.0.0")),
                    "order": hook.get("order") if isinstance(hook.get("order"), int) else 0,
                    "place": [file.path, *parsed.place("hooks", n, "id")],
                }
            )
    return {"hooks": hooks}


def bind(file: SourceFile, parsed: Document, scope: Scope, faults: Faults) -> Bound:
    """The state's hooks under `hooks`, in the order of the file."""
    bound = Bound(state={"hooks": []})
    finder = CodeFinder(scope.root, file.path, bound, faults)
    for n, _ in enumerate(parsed.get("hooks", default=[])):
        spec = convert(parsed, "Hooks", specs.Hook, faults, "hooks", n, name="Hook")
        if spec is None:
            continue
        at: tuple[PathPart, ...] = ("hooks", n)
        hook = _Binder(
            parsed, spec, scope, Checker(parsed, spec.event, scope, finder, bound, faults), faults, at
        ).bind()
        plain = msgspec.to_builtins(hook)
        if plain.get("timeout_s") == DEFAULT_TIMEOUT_S:
            del plain["timeout_s"]  # written out or left out, it is one and the same state
        bound.state["hooks"].append(plain)
        bound.places[f"hooks/{hook.id}"] = [file.path, *parsed.place(*at, "id")]
        for k, rule in enumerate(spec.enforces):
            bound.need("enforces", rule, file.path, *parsed.place(*at, "enforces", k))
    return bound


class _Binder:
    """Binds one hook."""

    def __init__(
        self,
        document: Document,
        spec: specs.Hook,
        scope: Scope,
        checker: Checker,
        faults: Faults,
        at: tuple[PathPart, ...],
    ) -> None:
        self.document = document
        self.spec = spec
        self.scope = scope
        self.checker = checker
        self.faults = faults
        self.at = at

    def bind(self) -> state.Hook:
        """The hook as the state keeps it."""
        spec = self.spec
        self._form()
        when = self._when(spec.when) if spec.when is not None else {}
        check = self.checker.check(spec.check, *self.at, "check") if spec.check is not None else None
        observe = None
        if spec.observe is not None:
            observe = self._observe(spec.observe)
        self._timing()
        return state.Hook(
            id=spec.id,
            event=spec.event,
            when=when,
            check=check,
            otherwise=self._action("otherwise", spec.otherwise),
            then=self._action("then", spec.then),
            observe=observe,
            on_error=spec.on_error,
            timeout_s=spec.timeout_s,
            enforces=spec.enforces,
        )

    def _form(self) -> None:
        spec = self.spec
        given = [name for name in ("check", "otherwise", "then", "observe") if getattr(spec, name) is not None]
        if given not in (["check", "otherwise"], ["then"], ["observe"]):
            hint = ""
            if given == ["check"]:
                hint = "say under `otherwise` what happens when the check fails"
            elif given == ["otherwise"]:
                hint = "say under `check` when it happens, or write `then` for always"
            self._fault(
                "hook-form",
                f"the hook `{spec.id}` does nothing, or more than one thing",
                got=" and ".join(given) or "none of them",
                allowed=_FORMS,
                hint=hint,
            )

    def _fault(self, code: str, message: str, *below: PathPart, key: bool = False, **parts: Any) -> None:
        self.faults.add(self.document.fault(code, message, *self.at, *below, key=key, **parts))

    def _when(self, when: specs.When) -> dict[str, Any]:
        event = self.spec.event
        for field in ("tools", "tags", "groups", "effects"):
            if getattr(when, field) and event not in TOOL_EVENTS:
                self._fault(
                    "hook-when",
                    f"`{field}` looks at a call, and there is none at {event}",
                    "when",
                    field,
                    key=True,
                    got=event,
                    allowed="pre_tool, post_tool",
                )
        if when.result and event != "post_tool":
            self._fault(
                "hook-when",
                f"`result` looks at a result, and there is none at {event}",
                "when",
                "result",
                key=True,
                got=event,
                allowed="post_tool",
            )
        self.checker.names(when.tools, self.scope.tools, "tool", *self.at, "when", "tools")
        self.checker.names(when.tags, self.scope.tags, "tag", *self.at, "when", "tags")
        self.checker.names(when.groups, self.scope.groups, "group", *self.at, "when", "groups")
        for n, kind in enumerate(when.skill_kinds):
            if not any(skill["kind"] == kind for skill in self.scope.skills.values()):
                self._fault(
                    "hook-when",
                    f"no skill of the harness is a {kind} skill",
                    "when",
                    "skill_kinds",
                    n,
                    got=kind,
                    allowed=listed({s["kind"] for s in self.scope.skills.values()}),
                )
        if when.expr is not None:
            self.checker.expression(*self.at, "when", "expr")
        plain: dict[str, Any] = msgspec.to_builtins(when)
        return plain

    def _observe(self, observe: specs.Observe) -> dict[str, Any]:
        if (observe.python is None) == (observe.command is None):
            self._fault("hook-form", "an observer is told in exactly one way", "observe", allowed="python or command")
        self.checker.code(observe.python, observe.command, *self.at, "observe")
        plain: dict[str, Any] = msgspec.to_builtins(observe)
        return plain

    def _action(self, field: str, action: specs.Action | None) -> state.Action | None:
        if action is None:
            return None
        check_action(self.document, self.spec, action, self.checker, self.scope, self.faults, *self.at, field)
        message = None
        if action.message is not None:
            text = text_of(self.document.passage(*self.at, field, "message", "text"), self.scope, self.faults)
            message = state.Message(text=text, role=action.message.role, wrap=action.message.wrap)
        return state.Action(
            action=action.action,
            message=message,
            max_retries=action.max_retries,
            exhausted=action.exhausted,
            rewrite={"target": action.rewrite.target, "to": action.rewrite.to} if action.rewrite is not None else None,
            fallback={"reply": action.fallback.reply, "route": action.fallback.route}
            if action.fallback is not None
            else None,
        )

    def _timing(self) -> None:
        deadline = self.scope.limits.get("deadline_s")
        if self.scope.harness and deadline is not None and self.spec.timeout_s > deadline and self.spec.observe is None:
            self._fault(
                "hook-timeout",
                "the hook may take longer than the whole request",
                "timeout_s",
                got=f"{self.spec.timeout_s:g} s",
                allowed=f"less than deadline_s, {deadline:g}",
                severity="warning",
            )
