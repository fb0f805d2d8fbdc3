"""Schemas: whether what a model sees of a tool's parameters has the structure of the parent's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What a reader of a schema is told; a check knows nothing of it.
_TOLD = frozenset({"title", "description", "examples"})
#: Keywords whose members are named by the author.
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
#: Keywords whose values are data and no schemas.
DATA = frozenset({"enum", "const", "default"})
#: Keywords whose subschemas speak of the same object.
SAME_OBJECT = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})

Names = Mapping[str, str]
_NO_NAMES: Names = {}


def difference(whole: Any, seen: Any, back: Names, *, enum_of: str | None = None) -> str | None:
    """Where `seen` differs from `whole` but for titles, descriptions and examples, as a JSON Pointer; None when nowhere.

    `back` undoes the renaming of the top-level properties; the enum of the top-level property `enum_of` (a canonical
    name) is left out of the comparison.
    """
    return _schema(whole, seen, back, enum_of, "")


def _schema(whole: Any, seen: Any, back: Names, enum_of: str | None, at: str) -> str | None:
    if not isinstance(whole, dict) or not isinstance(seen, dict):
        return None if type(whole) is type(seen) and whole == seen else at or "/"
    for key, value in seen.items():
        if key in whole:
            if value is whole[key] and not back and enum_of is None:
                continue
            found = _keyword(key, whole[key], value, back, enum_of, f"{at}/{key}")
            if found is not None:
                return found
        elif key not in _TOLD:
            return f"{at}/{key}"
    for key in whole:
        if key not in seen and key not in _TOLD:
            return f"{at}/{key}"
    return None


def _keyword(key: str, whole: Any, seen: Any, back: Names, enum_of: str | None, at: str) -> str | None:
    if key in _TOLD and isinstance(whole, (str, list)):
        return None
    if key in DATA or not isinstance(whole, (dict, list)):
        return None if same(whole, seen) else at
    if key == "required":
        names = [back.get(name, name) for name in seen] if isinstance(seen, list) else seen
        return None if names == whole else at
    if key == "dependentRequired":
        names = (
            {back.get(k, k): [back.get(n, n) for n in v] for k, v in seen.items()} if isinstance(seen, dict) else seen
        )
        return None if names == whole else at
    if key in _NAMED:
        return _members(key, whole, seen, back, enum_of, at)
    below = back if key in SAME_OBJECT else _NO_NAMES
    if isinstance(whole, list):
        if not isinstance(seen, list) or len(seen) != len(whole):
            return at
        for number, (a, b) in enumerate(zip(whole, seen, strict=True)):
            if (found := _schema(a, b, below, None, f"{at}/{number}")) is not None:
                return found
        return None
    return _schema(whole, seen, below, None, at)


def _members(key: str, whole: Any, seen: Any, back: Names, enum_of: str | None, at: str) -> str | None:
    if not isinstance(whole, dict) or not isinstance(seen, dict) or len(whole) != len(seen):
        return at
    own = key in ("properties", "dependentSchemas")
    below = back if key == "dependentSchemas" else _NO_NAMES
    for shown, value in seen.items():
        name = back.get(shown, shown) if own else shown
        if name not in whole:
            return f"{at}/{shown}"
        member = whole[name]
        if value is member:
            continue
        if name == enum_of and key == "properties" and isinstance(member, dict) and isinstance(value, dict):
            member, value = _less_enum(member), _less_enum(value)
        if (found := _schema(member, value, below, None, f"{at}/{name}")) is not None:
            return found
    return None


def _less_enum(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key != "enum"}


def same(whole: Any, seen: Any) -> bool:
    """Equality of JSON: true is not 1."""
    if type(whole) is not type(seen):
        return False
    if isinstance(whole, list):
        return len(whole) == len(seen) and all(map(same, whole, seen))
    if isinstance(whole, dict):
        return whole.keys() == seen.keys() and all(same(value, seen[key]) for key, value in whole.items())
    return whole == seen
