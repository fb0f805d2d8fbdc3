"""Checks of hooks: each kind's own conditions, and every name in them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any

import msgspec

from harnessctl.compile import json_schemas
from harnessctl.compile.code import CodeFinder
from harnessctl.compile.commands import check_command
from harnessctl.compile.scope import Scope, listed
from harnessctl.compile.templates import check_expression, check_template
from harnessctl.compile.unit import Bound
from harnessctl.errors import Faults
from harnessctl.manifests.events import READABLE, TOOL_EVENTS, names_at
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.specs import hooks as specs

#: What a judge's scores may be called in `pass`.
SCORE_NAMES = ("score", "accuracy", "effectiveness", "reason")


class Checker:
    """Checks the parts of one hook at its event."""

    def __init__(
        self, document: Document, event: str, scope: Scope, finder: CodeFinder, bound: Bound, faults: Faults
    ) -> None:
        self.document = document
        self.event = event
        self.scope = scope
        self.finder = finder
        self.bound = bound
        self.faults = faults

    def check(self, check: specs.Check, *at: PathPart) -> dict[str, Any]:
        """Check a check and those inside it; returns it as the state keeps it."""
        given = [field for field in check.__struct_fields__ if getattr(check, field) is not None]
        if len(given) != 1:
            names = [field.rstrip("_") for field in given]
            self.fault(
                "hook-check",
                "a check is exactly one of the checks that there are",
                *at,
                got=", ".join(names) or "nothing",
                allowed=", ".join(f.rstrip("_") for f in check.__struct_fields__),
                hint="put several under `all` or `any`" if given else "",
            )
        out: dict[str, Any] = msgspec.to_builtins(check)
        for name in ("all", "any"):
            inner: list[specs.Check] | None = getattr(check, name)
            if inner is not None:
                out[name] = [self.check(c, *at, name, n) for n, c in enumerate(inner)]
        if check.not_ is not None:
            out["not"] = self.check(check.not_, *at, "not")
        self._target(out, *at)
        if check.json_schema is not None:
            rewritten = json_schemas.rewrite(self.document, self.faults, *at, "json_schema", "schema")
            out["json_schema"]["schema"] = rewritten.schema if rewritten is not None else {}
        if check.regex is not None:
            self._regex(check.regex, *at, "regex")
        if isinstance(check.max_chars, specs.MaxCharsCheck):
            self._max_chars(check.max_chars, *at, "max_chars")
        if check.skill_loaded is not None:
            self._skill_loaded(check.skill_loaded, *at, "skill_loaded")
        if check.tool_called is not None:
            self._tool_called(check.tool_called, *at, "tool_called")
        if check.tool_order is not None:
            self.names(check.tool_order.order, self.scope.tools, "tool", *at, "tool_order", "order")
        if check.forbid_phrases is not None:
            for n, phrase in enumerate(check.forbid_phrases.phrases):
                if not phrase.strip():
                    self.fault("hook-check", "an empty phrase is in every text", *at, "forbid_phrases", "phrases", n)
        if check.judge is not None:
            self._judge(check.judge, *at, "judge")
        if check.expr is not None:
            self.expression(*at, "expr")
        self.code(check.python, check.command, *at)
        return out

    def fault(self, code: str, message: str, *at: PathPart, **parts: Any) -> None:
        """Add a fault at a path of the manifest."""
        self.faults.add(self.document.fault(code, message, *at, **parts))

    def names(self, names: Iterable[str], known: Iterable[str], what: str, *at: PathPart) -> None:
        """Each of the names, which stand in a list at a path, is known."""
        known = set(known)
        for n, name in enumerate(names):
            if name not in known:
                self.fault(
                    f"{what}-unknown",
                    f"there is no {what} of this name",
                    *at,
                    n,
                    got=name,
                    allowed=listed(known),
                    hint=self.scope.near(name, known),
                )

    def expression(self, *at: PathPart) -> None:
        """The expression at a path reads only what there is at the event."""
        used = check_expression(self.document.passage(*at), self.scope, names_at(self.event), self.faults)
        self._uses(used)

    def template(self, *at: PathPart) -> None:
        """The template at a path reads only what there is at the event."""
        used = check_template(self.document.passage(*at), self.scope, names_at(self.event), self.faults)
        self._uses(used)

    def code(self, python: str | None, command: specs.CommandCheck | None, *at: PathPart) -> None:
        """The function or the program is there; embeds it."""
        if python is not None:
            function = self.finder.target(self.document, python, *at, "python")
            if function is not None:
                positional = [*function.args.posonlyargs, *function.args.args]
                needed = len(positional) - len(function.args.defaults)
                keyword = [
                    a for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d is None
                ]
                if needed > 1 or keyword or (not positional and function.args.vararg is None):
                    self.fault(
                        "code-signature",
                        f"the function `{function.name}` is called with one argument, the names of the event",
                        *at,
                        "python",
                        got=f"{function.name}({', '.join(a.arg for a in positional)})",
                        allowed=f"{function.name}(names)",
                    )
        if command is not None:
            check_command(self.document, command, self.scope, self.bound, self.faults, *at, "command")

    def _uses(self, limits: Iterable[str]) -> None:
        for name in sorted(limits):
            self.bound.need("limit-used", name)

    def _target(self, plain: dict[str, Any], *at: PathPart) -> None:
        for kind, body in plain.items():
            target = body.get("target") if isinstance(body, dict) else None
            if target is not None and kind != "not" and target not in READABLE[self.event]:
                self.fault(
                    "hook-target",
                    f"there is no {target} at {self.event}",
                    *at,
                    kind,
                    "target",
                    got=target,
                    allowed=", ".join(READABLE[self.event]),
                )

    def _regex(self, regex: specs.RegexCheck, *at: PathPart) -> None:
        if regex.must is None and regex.must_not is None:
            self.fault("hook-check", "regex looks for nothing", *at, allowed="must, must_not or both")
        for field in ("must", "must_not"):
            pattern = getattr(regex, field)
            if pattern is None:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    re.compile(pattern)
            except (re.error, RecursionError, OverflowError, Warning) as error:
                self.fault(
                    "hook-regex",
                    "the pattern does not compile",
                    *at,
                    field,
                    got=f"{pattern[:60]}: {error}",
                    allowed="Python's re; in single quotes a backslash needs no doubling",
                )

    def _max_chars(self, check: specs.MaxCharsCheck, *at: PathPart) -> None:
        if (check.value is None) == (check.limit is None):
            self.fault("hook-check", "max_chars is a number or a limit", *at, allowed="value or limit")
        if check.value is not None and check.value < 1:
            self.fault("hook-check", "max_chars is at least 1", *at, "value", got=str(check.value), allowed=">= 1")
        if check.limit is not None:
            if check.limit not in self.scope.limits:
                self.fault(
                    "limit-unknown",
                    "there is no limit of this name",
                    *at,
                    "limit",
                    got=check.limit,
                    allowed=listed(self.scope.limits),
                    hint=self.scope.near(check.limit, self.scope.limits),
                )
            self._uses([check.limit])

    def _skill_loaded(self, check: specs.SkillLoadedCheck, *at: PathPart) -> None:
        if check.skill is None and check.kind is None:
            self.fault("hook-check", "skill_loaded names nothing", *at, allowed="skill, kind or both")
        if check.skill is not None and check.skill not in self.scope.skills:
            self.fault(
                "skill-unknown",
                "there is no skill of this name",
                *at,
                "skill",
                got=check.skill,
                allowed=listed(self.scope.skills),
                hint=self.scope.near(check.skill, self.scope.skills),
            )
        kinds = {skill["kind"] for skill in self.scope.skills.values()}
        if check.kind is not None and check.kind not in kinds:
            self.fault(
                "skill-unknown",
                f"no skill of the harness is a {check.kind} skill",
                *at,
                "kind",
                got=check.kind,
                allowed=listed(kinds),
            )

    def _tool_called(self, check: specs.ToolCalledCheck, *at: PathPart) -> None:
        self.names(check.tools, self.scope.tools, "tool", *at, "tools")
        self.names(check.tags, self.scope.tags, "tag", *at, "tags")
        if check.max is not None and check.max < check.min:
            self.fault(
                "hook-check",
                "no number of calls is at least `min` and at most `max`",
                *at,
                "max",
                got=f"min {check.min}, max {check.max}",
                allowed="max >= min",
                hint="min is 1 unless given" if self.document.get(*at, "min") is None else "",
            )
        if check.same_args and self.event not in TOOL_EVENTS:
            self.fault(
                "hook-target",
                f"same_args compares with a call, and there is none at {self.event}",
                *at,
                "same_args",
                key=True,
                got=self.event,
                allowed="pre_tool, post_tool",
            )
        if isinstance(check.same_args, list):
            tools = [self.scope.tools[name] for name in check.tools if name in self.scope.tools]
            known = {name for tool in tools for name in tool["parameters"].get("properties", {})}
            if tools:
                self.names(check.same_args, known, "parameter", *at, "same_args")

    def _judge(self, check: specs.JudgeCheck, *at: PathPart) -> None:
        known = self.scope.harnesses - {self.scope.harness}
        if check.harness not in known:
            hint = "a harness cannot judge itself" if check.harness == self.scope.harness else ""
            self.fault(
                "harness-unknown",
                "there is no harness of this name to judge",
                *at,
                "harness",
                got=check.harness,
                allowed=listed(known),
                hint=hint or self.scope.near(check.harness, known),
            )
        else:
            self.bound.need("judge", check.harness, self.document.path, *self.document.place(*at, "harness"))
        for name in check.input:
            self.expression(*at, "input", name)
        if self.document.get(*at, "pass") is not None:
            check_expression(self.document.passage(*at, "pass"), self.scope, SCORE_NAMES, self.faults)
