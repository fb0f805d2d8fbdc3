"""Filling: the calls that would satisfy a hook, with arguments from what is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import jsonschema_rs

from harnessctl.bundle.state import Tool
from harnessctl.bundle.validators import validator_of
from harnessctl.errors import HarnessctlError
from harnessctl.records.scenario import Gold
from harnessctl.simulate.demands import Called

_MISSING = object()


class Unfilled(HarnessctlError):
    """No tool that would satisfy a hook can be called with what is known; the message says what is missing."""


class Call(Protocol):
    """A call with canonical names."""

    @property
    def tool(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any]: ...


class Filling:
    """Finds calls of one harness's tools. Arguments are checked against the tools' schemas."""

    def __init__(self, tools: Iterable[Tool], load_skill: str | None) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._load_skill = load_skill
        self._validators: dict[str, jsonschema_rs.Validator] = {}

    def fault(self, tool: str, arguments: dict[str, Any]) -> str:
        """What is wrong with a call's arguments, or nothing."""
        validator = self._validators.get(tool)
        if validator is None:
            try:
                validator = validator_of(self._tools[tool].parameters)
            except (ValueError, jsonschema_rs.ReferencingError) as error:
                return f"the tool's parameters are no JSON Schema: {error}"
            self._validators[tool] = validator
        error = next(validator.iter_errors(arguments), None)
        return "" if error is None else error.message

    def is_met(self, need: Called, call: Call | None, made: Sequence[Call]) -> bool:
        """Whether calls that were made satisfy `need`."""
        same = _same(need, call)
        fitting = sum(done.tool in need.tools and _agrees(done.arguments, same, need) for done in made)
        return fitting >= need.spec.min

    def calls(
        self, need: Called, call: Call | None, left: Sequence[Call], gold: Gold
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Calls that satisfy `need` for `call` (null: for the reply), the best first; Unfilled when there is no other.

        First those that gold makes later or names as prelude or optional, then tools whose required parameters are
        known: by `same_args`, from `gold.known`, from the call itself, or from gold's other calls where they agree.
        """
        same = _same(need, call)
        for given in (*left, *gold.prelude, *gold.optional):
            if given.tool in need.tools and _agrees(given.arguments, same, need):
                yield given.tool, dict(given.arguments)
        filled: list[tuple[bool, str, dict[str, Any]]] = []
        missing: list[str] = []
        for name in need.tools:
            tool = self._tools[name]
            if name == self._load_skill or tool.final is not None:
                continue
            arguments, lacks = self._fill(tool, same, need, call, gold)
            fault = f"`{'`, `'.join(lacks)}` is not known" if lacks else self.fault(name, arguments)
            if fault:
                missing.append(f"{name}: {fault}")
            else:
                filled.append((not arguments and name not in need.spec.tools, name, arguments))
        for _, name, arguments in sorted(filled, key=lambda found: found[0]):
            yield name, arguments
        what = " or ".join(need.spec.tools) or f"a tool tagged {' or '.join(need.spec.tags)}"
        raise Unfilled(f"{what} must be called first, and cannot be: {'; '.join(missing) or 'there is none'}")

    def _fill(
        self, tool: Tool, same: dict[str, Any] | None, need: Called, call: Call | None, gold: Gold
    ) -> tuple[dict[str, Any], list[str]]:
        """(arguments, the names of those that are not known)."""
        if same is None:
            return {}, [name for name in _names(need) if call is None or name not in call.arguments]
        if need.spec.same_args is True:
            return dict(same), []
        properties: dict[str, Any] = tool.parameters.get("properties", {})
        required: list[str] = tool.parameters.get("required", [])
        arguments = dict(same)
        lacks = [name for name in same if name not in properties]
        for name in required:
            if name in arguments:
                continue
            value = self._known(name, call, gold)
            if value is _MISSING:
                lacks.append(name)
            else:
                arguments[name] = value
        if not required and not arguments:
            arguments = {name: gold.known[name] for name in properties if name in gold.known}
        return arguments, lacks

    def _known(self, name: str, call: Call | None, gold: Gold) -> Any:
        if name in gold.known:
            return gold.known[name]
        if call is not None and name in call.arguments:
            return call.arguments[name]
        others = [other.arguments[name] for other in gold.calls if name in other.arguments]
        return others[0] if others and all(other == others[0] for other in others) else _MISSING


def _names(need: Called) -> list[str]:
    return need.spec.same_args if isinstance(need.spec.same_args, list) else []


def _same(need: Called, call: Call | None) -> dict[str, Any] | None:
    """The arguments that must be those of `call`; None when it lacks one of them."""
    if not need.spec.same_args:
        return {}
    if call is None:
        return None
    if need.spec.same_args is True:
        return call.arguments
    names = _names(need)
    return {name: call.arguments[name] for name in names} if all(name in call.arguments for name in names) else None


def _agrees(arguments: dict[str, Any], same: dict[str, Any] | None, need: Called) -> bool:
    if same is None:
        return False
    if need.spec.same_args is True:
        return arguments == same
    return all(arguments.get(name, _MISSING) == value for name, value in same.items())
