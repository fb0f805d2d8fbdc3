"""Fields: where a value of a log is, compiled from a mapping; and the value, of the type that is wanted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

import orjson

from harnessctl.runtime.tools.http import MISSING, at_pointer

_POINTER = re.compile(r"(/([^~/]|~[01])*)*")


class FieldError(Exception):
    """A field of an item is not of the type that is wanted; the text says which, and what was found."""


class Field:
    """One field. `name` is the field of the scenario, for messages."""

    def __init__(self, name: str, read: Callable[[Any], Any], shown: str) -> None:
        self.name = name
        self._read = read
        self._shown = shown

    def raw(self, item: Any) -> Any:
        """The value in `item`; None where there is none."""
        return self._read(item)

    def text(self, item: Any) -> str | None:
        """The value as text: numbers are written out. FieldError for a list, an object or a truth value."""
        value = self._read(item)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(value, "text")
        return str(value)

    def texts(self, item: Any) -> list[str]:
        """The value as a list of texts: one text is a list of one, nothing is none."""
        value = self._read(item)
        if value is None:
            return []
        if isinstance(value, str):
            return [value]
        if isinstance(value, list) and all(isinstance(member, str) for member in value):
            return value
        raise self._wrong(value, "text or a list of texts")

    def object(self, item: Any) -> dict[str, Any]:
        """The value as an object, which may be written as JSON text; nothing is an empty one."""
        value = self._read(item)
        if isinstance(value, str):
            try:
                value = orjson.loads(value or "{}")
            except orjson.JSONDecodeError as error:
                raise FieldError(f"{self.name}: {self._shown} is not JSON: {error.msg}") from None
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(value, "an object")
        return value

    def _wrong(self, value: Any, allowed: str) -> FieldError:
        return FieldError(f"{self.name}: {self._shown} is of type {type(value).__name__}; allowed {allowed}")


class FieldFault(Protocol):
    """Reports what is wrong with how a field is written, at its place in the mapping."""

    def __call__(self, message: str, *, got: str, allowed: str, hint: str = "") -> None: ...


def compile_field(source: Any, name: str, fault: FieldFault) -> Field:
    """The field that a mapping writes as `source`; a fault where that is of no form that a field may have."""
    return Field(name, _reader(source, fault), source if isinstance(source, str) else name)


def list_at(item: Any, pointer: str, name: str) -> list[Any]:
    """The list at a pointer; nothing is an empty one. FieldError for anything else."""
    value = at_pointer(item, pointer)
    if value is MISSING or value is None:
        return []
    if not isinstance(value, list):
        raise FieldError(f"{name}: {pointer} is of type {type(value).__name__}; allowed a list")
    return value


def _reader(source: Any, fault: FieldFault) -> Callable[[Any], Any]:
    if isinstance(source, str) and source.startswith("/"):
        return _at(source, None, fault)
    if isinstance(source, dict):
        if source.keys() == {"value"}:
            return lambda item, value=source["value"]: value
        pointer = source.get("at")
        if source.keys() <= {"at", "default"} and isinstance(pointer, str):
            return _at(pointer, source.get("default"), fault)
        fault(
            "a field is not of a form that can be read",
            got=", ".join(source) or "nothing",
            allowed="{value: ...} or {at: /pointer, default: ...}",
        )
    if isinstance(source, list) and any(isinstance(m, str) and m.startswith("/") for m in source):
        parts = [_reader(member, fault) for member in source]
        return lambda item: _joined([part(item) for part in parts])
    return lambda item, value=source: value


def _at(pointer: str, default: Any, fault: FieldFault) -> Callable[[Any], Any]:
    if not _POINTER.fullmatch(pointer):
        fault(
            "a pointer is not a JSON Pointer",
            got=pointer,
            allowed="/a/b/0",
            hint="`~` is written `~0`, `/` in a name `~1`",
        )

    def read(item: Any) -> Any:
        value = at_pointer(item, pointer)
        return default if value is MISSING or value is None else value

    return read


def _joined(values: list[Any]) -> str | None:
    """The texts that are there, one a line."""
    texts = [value if isinstance(value, str) else orjson.dumps(value).decode() for value in values if value is not None]
    return "\n".join(texts) if texts else None
