"""Bounds: narrows a JSON Schema until every instance of it is short, so that decoding under it must end.

What always holds: whatever fits the bounded schema fits the one it was made from. Lengths apply only where the schema
sets none. Recursive schemas stay recursive: there the limit on tokens is what ends a reply.
"""

from __future__ import annotations

from typing import Any

MAX_STRING = 200
MAX_ITEMS = 16
MAX_KEYS = 8
MAX_KEY = 40
MAX_NUMBER = 10**12
SMALLEST_STEP = 1e-6

_TALK = ("title", "description", "examples", "example", "default", "$comment", "deprecated", "readOnly", "writeOnly")
_UNTYPED = (
    "type",
    "enum",
    "const",
    "$ref",
    "$dynamicRef",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "properties",
    "items",
)
_JOINED = ("anyOf", "oneOf", "allOf", "$ref", "if", "dependentSchemas")


def bound_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The narrowed schema. Objects lose properties that are not named, unless parts of the schema are joined."""
    return _bound(schema, closes=not _is_joined(schema))


def _is_joined(schema: Any) -> bool:
    """Whether an object's properties are spread over several schemas, so that closing one would shut out another's."""
    if isinstance(schema, list):
        return any(_is_joined(item) for item in schema)
    if not isinstance(schema, dict):
        return False
    if "allOf" in schema or ("properties" in schema and any(key in schema for key in _JOINED)):
        return True
    return any(_is_joined(item) for item in schema.values())


def _bound(schema: Any, closes: bool) -> Any:
    if schema is True or schema == {}:
        schema = {"type": ["string", "number", "boolean", "null"]}
    if not isinstance(schema, dict):
        return schema
    out = {key: value for key, value in schema.items() if key not in _TALK}
    if not any(key in out for key in _UNTYPED):
        out["type"] = ["string", "number", "boolean", "null"]
    for key in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
        if isinstance(out.get(key), dict):
            out[key] = {name: _bound(value, closes) for name, value in out[key].items()}
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if isinstance(out.get(key), list):
            out[key] = [_bound(value, closes) for value in out[key]]
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = _bound(out[key], closes)
    if "enum" in out or "const" in out:
        return out
    named = out.get("type")
    types = {named} if isinstance(named, str) else set(named or ())
    if "string" in types:
        out.setdefault("maxLength", max(MAX_STRING, out.get("minLength", 0)))
    if types & {"integer", "number"}:
        _bound_number(out)
    if "number" in types:
        out.setdefault("multipleOf", SMALLEST_STEP)
    if "array" in types or "items" in out:
        out.setdefault("items", _bound(True, closes))
        out.setdefault("maxItems", max(MAX_ITEMS, out.get("minItems", 0)))
    if ("object" in types or "properties" in out) and closes:
        _bound_object(out)
    return out


def _bound_number(out: dict[str, Any]) -> None:
    low = out.get("minimum", out.get("exclusiveMinimum", 0))
    high = out.get("maximum", out.get("exclusiveMaximum", 0))
    if not {"minimum", "exclusiveMinimum"} & out.keys():
        out["minimum"] = min(-MAX_NUMBER, 10 * high)
    if not {"maximum", "exclusiveMaximum"} & out.keys():
        out["maximum"] = max(MAX_NUMBER, 10 * low)


def _bound_object(out: dict[str, Any]) -> None:
    if "properties" in out:
        properties = dict(out["properties"])
        for name in out.get("required", ()):
            if name not in properties:
                properties[name] = _bound(out.get("additionalProperties", True), True)
        out["properties"] = properties
        if "patternProperties" not in out and not out.get("minProperties"):
            out["additionalProperties"] = False
    elif "patternProperties" not in out and out.get("additionalProperties") is not False:
        values = _bound(out.pop("additionalProperties", True), True)
        out["patternProperties"] = {f"^\\w{{1,{MAX_KEY}}}$": values}
        out["additionalProperties"] = False
        out.setdefault("maxProperties", max(MAX_KEYS, out.get("minProperties", 0)))
