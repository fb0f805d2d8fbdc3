"""Arguments: does a call fit the tool's parameters, and if not, what a model must change.

Checked in canonical names; the message speaks of the parameters as the model was shown them.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import orjson
from jsonschema_rs import ValidationErrorKind as Kind

from harnessctl.bundle.state import Tool
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tools.outcome import compiled, shorten

#: A message names at most this many faults.
MAX_FAULTS = 5


class ArgumentCheck:
    """The compiled parameters of one tool. ToolError when they are no JSON Schema."""

    def __init__(self, tool: Tool, surface: SurfaceView) -> None:
        self._tool = tool.name
        self._surface = surface
        self._validator = compiled({"type": "object", **tool.parameters}, f"tool `{tool.name}`: parameters")
        self._names = [*tool.parameters.get("properties", {})]
        self.is_valid = self._validator.is_valid

    def explain(self, args: dict[str, Any]) -> str | None:
        """What is wrong with `args`: where, got, allowed. None when nothing is."""
        faults = [self._fault(error) for error in self._validator.iter_errors(args)]
        if not faults:
            return None
        more = f" And {len(faults) - MAX_FAULTS} more." if len(faults) > MAX_FAULTS else ""
        return "The arguments do not fit. " + " ".join(faults[:MAX_FAULTS]) + more

    def _fault(self, error: jsonschema_rs.ValidationError) -> str:
        path, kind = error.instance_path, error.kind
        where = self._place(path)
        got = f"got {_short_json(error.instance)}"
        match kind:
            case Kind.Required():
                return f"{self._place([*path, kind.property])} is missing."
            case Kind.AdditionalProperties() | Kind.UnevaluatedProperties():
                names = ", ".join(f"`{name}`" for name in kind.unexpected)
                allowed = "" if path else f"; allowed: {self._parameters()}"
                return f"{names} not known{f' in {where}' if path else ''}{allowed}."
            case Kind.Type():
                return f"{where}: {got}; allowed: {' or '.join(kind.types)}."
            case Kind.Enum():
                return f"{where}: {got}; allowed: {', '.join(map(_short_json, kind.options))}."
            case Kind.Constant():
                return f"{where}: {got}; allowed: {_short_json(kind.expected_value)}."
            case Kind.AnyOf() | Kind.OneOfNotValid() if path:
                within = [self._fault(e) for branch in kind.context for e in branch[:1]]
                return f"{where}: {got}; one of these must be mended: {' '.join(within[:MAX_FAULTS])}"
        if path:
            return f"{where}: {shorten(error.message, 300)}."
        # The library's own message would show the whole object in canonical names.
        limit = kind.value if isinstance(kind.value, int) else None
        return f"together they break `{kind.name}`{'' if limit is None else f' {limit}'} of this tool."

    def _place(self, path: list[str | int]) -> str:
        """`items/0/sku`, the first step being the parameter as the model knows it."""
        if not path:
            return "the arguments"
        return f"`{'/'.join([self._parameter(str(path[0])), *map(str, path[1:])])}`"

    def _parameter(self, name: str) -> str:
        return next(iter(self._surface.args_to_surface(self._tool, {name: None})))

    def _parameters(self) -> str:
        return ", ".join(f"`{self._parameter(name)}`" for name in self._names) or "no arguments"


def _short_json(value: Any) -> str:
    return shorten(orjson.dumps(value, default=str).decode(), 120)
