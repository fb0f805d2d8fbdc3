"""Demands: what the hooks of a harness want to have been done before a call or a reply, found without running either.

Calls of a plan count as made and successful. A check is read as far as plans and texts decide it: `tool_called`,
`skill_loaded`, `tool_order`, and checks of the message, the arguments and the reply, alone and within `all`, `any` and
`not`. What hangs on results or on the context (`expr` that does not hold yet, `grounded_numbers`, python, a program, a
judge) stays open: only a run can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from harnessctl.bundle.state import Action, HarnessState, Hook, Tool
from harnessctl.errors import HookError
from harnessctl.manifests.events import READABLE
from harnessctl.manifests.specs.hooks import SkillLoadedCheck, ToolCalledCheck, When
from harnessctl.runtime.checks import compile_check
from harnessctl.runtime.checks.check import Moment, Outcome, Setting, read_spec
from harnessctl.runtime.code import Code
from harnessctl.runtime.layout import Layout
from harnessctl.runtime.when import Condition, compile_when

#: Checks of a text; on what a plan knows they are decided.
_OF_TEXT = frozenset({"regex", "max_chars", "forbid_phrases", "json_schema"})
_KNOWN_TARGETS = frozenset({"message", "args", "reply"})


@dataclass(slots=True, frozen=True)
class Called:
    """A call that must have been made: one of `tools`, as `spec` says."""

    spec: ToolCalledCheck
    tools: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class Loaded:
    """A skill that must have been loaded."""

    spec: SkillLoadedCheck


@dataclass(slots=True, frozen=True)
class Choice:
    """Any of the options, each of them needs together. `may_hold`: another part of the check may pass by itself."""

    options: tuple[tuple[Need, ...], ...]
    may_hold: bool


Need = Called | Loaded | Choice


@dataclass(slots=True, frozen=True)
class Finding:
    """What a hook has to say of a call or a reply. `needs` is given where it wants something, `reason` where it refuses."""

    state: Literal["met", "open", "wanting", "refused"]
    needs: tuple[Need, ...] = ()
    reason: str = ""


_MET = Finding("met")
_OPEN = Finding("open")
Ask = Callable[[Moment], Finding]


@dataclass(slots=True, frozen=True)
class Guard:
    """A hook before a call or a reply. `insists`: what it refuses does not happen, however often it is tried. `tools` are
    the only ones that it looks at."""

    hook: str
    when: Condition | None
    ask: Ask
    insists: bool
    tools: frozenset[str]

    def find(self, moment: Moment) -> Finding:
        """What the hook says at `moment`; open where its condition cannot be read."""
        try:
            if self.when is not None and not self.when(moment):
                return _MET
        except Exception:  # an author's expression may fail in any way
            return _OPEN
        finding = self.ask(moment)
        return _OPEN if finding.state == "refused" and not self.insists else finding


class Demands:
    """The guards of one state: `before_calls` of each tool (pre_tool) and `before_replies` (stop), in the order in which
    they run."""

    def __init__(self, state: HarnessState) -> None:
        self.tools: dict[str, Tool] = {tool.name: tool for tool in state.tools}
        code, layout = Code("", state.code), Layout(state.files)
        guards: list[Guard] = []
        self.before_replies: list[Guard] = []
        for hook in state.hooks:
            if hook.event in ("pre_tool", "stop"):
                setting = Setting(hook.id, hook.event, state, self.tools, code, layout)
                guard = _guard(hook, setting)
                if guard is not None:
                    (guards if hook.event == "pre_tool" else self.before_replies).append(guard)
        self.before_calls: dict[str, list[Guard]] = {
            name: [guard for guard in guards if name in guard.tools] for name in self.tools
        }


def _guard(hook: Hook, setting: Setting) -> Guard | None:
    """The hook as a guard; None for one that stops nothing."""
    action = hook.otherwise or hook.then
    if action is None or action.action in ("warn", "rewrite"):
        return None
    try:
        when = compile_when(hook.when, setting)
        ask = _ask(hook.check, setting) if hook.check is not None else _refusing("it lets no such call through")
    except HookError:
        return None  # a hook that cannot be made is the compiler's fault to name
    return Guard(hook.id, when, ask, _insists(action), frozenset(_looked_at(hook.when, setting)))


def _looked_at(raw: dict[str, Any], setting: Setting) -> Iterator[str]:
    """The tools that a condition lets through, by what it says of tools."""
    spec = read_spec(raw, When)
    for tool in setting.tools.values():
        if (
            (not spec.tools or tool.name in spec.tools)
            and (not spec.tags or not set(spec.tags).isdisjoint(tool.tags))
            and (not spec.groups or tool.group in spec.groups)
            and (not spec.effects or tool.effect in spec.effects)
        ):
            yield tool.name


def _insists(action: Action) -> bool:
    if action.action != "retry" or action.max_retries is None:
        return True
    return action.exhausted != "warn"


def _refusing(reason: str) -> Ask:
    finding = Finding("refused", reason=reason)
    return lambda moment: finding


def _ask(raw: dict[str, Any], setting: Setting) -> Ask:
    ((key, value),) = raw.items()
    match key:
        case "all":
            return _all([_ask(part, setting) for part in value])
        case "any":
            return _any([_ask(part, setting) for part in value])
        case "tool_called":
            return _called(value, setting)
        case "skill_loaded":
            spec = read_spec(value, SkillLoadedCheck)
            return _leaf(raw, setting, Finding("wanting", (Loaded(spec),)))
        case "tool_order":
            return _leaf(raw, setting, None)
        case "expr":
            return _leaf(raw, setting, _OPEN)
        case _:
            return _leaf(raw, setting, None) if _is_decided(raw, setting) else lambda moment: _OPEN


def _is_decided(raw: dict[str, Any], setting: Setting) -> bool:
    ((key, value),) = raw.items()
    if key in ("all", "any"):
        return all(_is_decided(part, setting) for part in value)
    if key == "not":
        return _is_decided(value, setting)
    if key in ("tool_called", "skill_loaded", "tool_order"):
        return True
    if key not in _OF_TEXT:
        return False
    target = value.get("target") if isinstance(value, dict) else None
    return (target or READABLE[setting.event][0]) in _KNOWN_TARGETS


def _leaf(raw: dict[str, Any], setting: Setting, failed: Finding | None) -> Ask:
    """The check itself; `failed` is what its failure means, refusal with its reason where that is null."""
    test = compile_check(raw, setting).test
    if test is None:
        return lambda moment: _OPEN

    def ask(moment: Moment) -> Finding:
        moment.known = None
        try:
            outcome: Outcome = test(moment)
        except Exception:  # what is looked at is not known before the run
            return _OPEN
        if outcome.ok:
            return _MET
        return failed or Finding("refused", reason=outcome.reason)

    return ask


def _called(value: Any, setting: Setting) -> Ask:
    """Too few calls are wanted; too many are refused."""
    spec = read_spec(value, ToolCalledCheck)
    tools = tuple(
        tool.name
        for tool in sorted(
            setting.tools.values(), key=lambda t: spec.tools.index(t.name) if t.name in spec.tools else len(spec.tools)
        )
        if (not spec.tools or tool.name in spec.tools) and (not spec.tags or not set(spec.tags).isdisjoint(tool.tags))
    )
    whole = _leaf({"tool_called": value}, setting, None)
    least = msgspec.structs.replace(spec, max=None)
    enough = _leaf({"tool_called": msgspec.to_builtins(least)}, setting, Finding("wanting", (Called(spec, tools),)))

    def ask(moment: Moment) -> Finding:
        finding = enough(moment)
        if finding.state == "met":
            return whole(moment)
        tool = moment.scene.tool
        # A call that is sent back counts as well: the same call made again is let through.
        return _OPEN if spec.ok is not True and tool is not None and tool.name in tools else finding

    return ask


def _all(parts: list[Ask]) -> Ask:
    def ask(moment: Moment) -> Finding:
        findings = [part(moment) for part in parts]
        for finding in findings:
            if finding.state == "refused":
                return finding
        needs = tuple(need for finding in findings for need in finding.needs)
        if needs:
            return Finding("wanting", needs)
        return _OPEN if any(finding.state == "open" for finding in findings) else _MET

    return ask


def _any(parts: list[Ask]) -> Ask:
    def ask(moment: Moment) -> Finding:
        findings = [part(moment) for part in parts]
        if any(finding.state == "met" for finding in findings):
            return _MET
        may_hold = any(finding.state == "open" for finding in findings)
        options = tuple(finding.needs for finding in findings if finding.needs)
        if options:
            return Finding("wanting", (Choice(options, may_hold),))
        return _OPEN if may_hold else Finding("refused", reason="; ".join(_reasons(findings)))

    return ask


def _reasons(findings: list[Finding]) -> Iterator[str]:
    return (finding.reason for finding in findings if finding.reason)
