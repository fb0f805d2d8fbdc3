"""Outcome: what one tool call came to, as the record keeps it and the model is told it."""

from __future__ import annotations

import math
from typing import Any

import jsonschema_rs
import msgspec
import orjson

from harnessctl.bundle.state import Tool
from harnessctl.bundle.validators import validator_of
from harnessctl.errors import ToolError
from harnessctl.records.trajectory import ToolStatus

#: Errors are sentences; what a tool puts into one is cut at this many characters.
MAX_ERROR_CHARS = 1000
_MAX_DEPTH = 250


class ToolOutcome(msgspec.Struct, kw_only=True):
    """What a call came to. `result` is plain JSON (null unless the status is `ok`), `error` a sentence for the model.

    `attempts` counts how often the tool was tried, 0 when there was no time left to try it. `fault` names a fault that
    a simulator injected.
    """

    status: ToolStatus
    result: Any = None
    error: str | None = None
    attempts: int = 1
    fault: str | None = None


class Failure(Exception):
    """A try that failed. `sent` is false where the tool is known not to have begun; `retry_after` is in seconds.

    `retryable` is false for failures that would come again: a wrong answer, a refused request.
    """

    def __init__(
        self,
        status: ToolStatus,
        message: str,
        *,
        retryable: bool = True,
        sent: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status: ToolStatus = status
        self.message = message
        self.retryable = retryable
        self.sent = sent
        self.retry_after = retry_after


def shorten(text: str, limit: int = MAX_ERROR_CHARS) -> str:
    """`text`, cut at `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def compiled(schema: dict[str, Any], what: str) -> jsonschema_rs.Validator:
    """A validator that fetches nothing. ToolError, beginning with `what`, when `schema` is not a JSON Schema."""
    try:
        return validator_of(schema)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise ToolError(f"{what}: not a JSON Schema: {shorten(str(error))}") from error


class ResultForm:
    """What a tool's result must be: JSON, within the schema if the tool has one, and at most `max_chars` long."""

    def __init__(self, tool: Tool, max_chars: int) -> None:
        self._validator = None if tool.result is None else compiled(tool.result, f"tool `{tool.name}`: result")
        self._max_chars = max_chars

    def fits(self, value: Any) -> bool:
        """Whether the tool has a result schema and `value` satisfies it."""
        return self._validator is not None and self._validator.is_valid(value)

    @property
    def has_schema(self) -> bool:
        """Whether the tool says what its result looks like."""
        return self._validator is not None

    def plain(self, value: Any) -> Any:
        """`value` as JSON that nobody else holds, cut with a mark where it is too long. Failure when it will not do."""
        if type(value) is str and value.isascii() and self._validator is None:
            return value if len(value) <= self._max_chars else self._cut(value, value)
        if value is None and not self.fits(None):
            raise Failure("error", "the tool gave no result", retryable=False)
        try:
            encoded = orjson.dumps(value)
        except TypeError as error:  # orjson.JSONEncodeError
            raise Failure(
                "error", f"the tool's result is not JSON: {json_fault(value) or error}", retryable=False
            ) from None
        if b"null" in encoded and (fault := json_fault(value)):
            raise Failure("error", f"the tool's result is not JSON: {fault}", retryable=False)
        plain = orjson.loads(encoded)
        if self._validator is not None and not self._validator.is_valid(plain):
            error = next(self._validator.iter_errors(plain))
            where = "/".join(map(str, ["", *error.instance_path])) or "the result"
            text = shorten(error.message, 300)
            raise Failure("error", f"the tool's result does not fit its schema: {where}: {text}", retryable=False)
        if len(encoded) <= self._max_chars:
            return plain
        return self._cut(plain if isinstance(plain, str) else encoded.decode(), plain)

    def _cut(self, text: str, plain: Any) -> Any:
        if len(text) <= self._max_chars:
            return plain
        mark = f"... [cut to {self._max_chars} of {len(text)} characters]"
        return text[: max(0, self._max_chars - len(mark))] + mark


def json_fault(value: Any, where: str = "", depth: int = 0) -> str:
    """The first place in `value` that JSON cannot hold, or nothing; NaN and infinity are written as null by encoders."""
    place = where or "the result"
    if depth > _MAX_DEPTH:
        return "the result is nested too deeply, or within itself"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{place} is {value}"
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return f"{place} has a key of type {type(key).__name__}; keys are strings"
            if fault := json_fault(item, f"{where}/{key}", depth + 1):
                return fault
        return ""
    if isinstance(value, (list, tuple)):
        return next(
            (fault for n, item in enumerate(value) if (fault := json_fault(item, f"{where}/{n}", depth + 1))), ""
        )
    if value is None or isinstance(value, (str, bool, int)):
        return ""
    try:
        orjson.dumps(value)
    except TypeError:
        return f"{place} is of type {type(value).__name__}"
    return ""
