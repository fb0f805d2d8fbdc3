"""What a JSON Schema error means to the author of a manifest: the place, what was found, what is allowed, the fix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from harnessctl.errors import Fault
from harnessctl.manifests.load import Document, PathPart

_TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}

#: Fields that authors look for at the top of a kind and that stand elsewhere.
_ELSEWHERE = {
    ("Skill", "version"): 'it stands under metadata: metadata: {version: "1.0.0"}',
    ("Skill", "kind"): "it stands under metadata: metadata: {kind: reply}",
    ("Skill", "author"): "it may stand under metadata",
    ("Skill", "tags"): "it may stand under metadata, as text",
    ("Skill", "model"): "skills do not choose a model",
}


_SIGNS = {"minimum": ">=", "maximum": "<=", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}
_BOUNDS = frozenset({"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", *_SIGNS})


def explain(document: Document, at: tuple[PathPart, ...], error: Any, schema: dict[str, Any]) -> Iterator[Fault]:
    """The faults for one error of a validator run on the value at `at`; `schema` is the whole schema."""
    where = (*at, *error.instance_path)
    kind, name = error.kind, error.kind.name
    value = document.get(*where)
    field = next((part for part in reversed(where) if isinstance(part, str)), "the file")
    if name == "anyOf":
        yield from _any_of(document, at, error, schema, where, value)
    elif name == "additionalProperties":
        known = _properties(error, schema)
        for unexpected in kind.unexpected:
            yield document.fault(
                "schema-unknown-field",
                f"unknown field `{unexpected}`",
                *where,
                unexpected,
                key=True,
                allowed=", ".join(known),
                hint=_ELSEWHERE.get((str(schema.get("title")), unexpected)) or did_you_mean(unexpected, known),
            )
    elif name == "required":
        yield document.fault(
            "schema-missing-field",
            f"the field `{kind.property}` is missing",
            *where,
            got=_keys(value),
            hint=_missing_hint(kind.property, value),
        )
    elif name in ("enum", "const"):
        options = kind.options if name == "enum" else [kind.expected_value]
        yield document.fault(
            "schema-value",
            f"`{field}` has a value that is not allowed",
            *where,
            got=shown(value),
            allowed=" | ".join(shown(x) for x in options),
            hint=did_you_mean(value, [x for x in options if isinstance(x, str)]),
        )
    elif name == "type":
        yield document.fault(
            "schema-type",
            f"`{field}` has a value of another type",
            *where,
            got=f"{shown(value)} ({type_name(value)})",
            allowed=_types(kind.types),
            hint=_type_hint(value, kind.types),
        )
    elif name == "pattern":
        yield document.fault(
            "schema-pattern",
            f"`{field}` is not of the form that is allowed",
            *where,
            got=shown(value),
            allowed=_description(error, schema) or kind.pattern,
        )
    elif name == "propertyNames":
        bad = kind.error.instance if hasattr(kind.error, "instance") else ""
        yield document.fault(
            "schema-pattern",
            f"a key of `{field}` is not of the form that is allowed",
            *where,
            *([bad] if isinstance(bad, str) and bad else []),
            key=True,
            got=shown(bad),
            allowed=_description(kind.error, schema) or str(kind.error.message),
        )
    elif name in _BOUNDS:
        yield _beyond(document, where, kind, name, field, value)
    else:
        yield document.fault("schema-value", f"`{field}` does not fit: {error.message[:200]}", *where)


def _beyond(document: Document, where: tuple[PathPart, ...], kind: Any, name: str, field: str, value: Any) -> Fault:
    """The fault of a value that is too long, too large, or too short or small."""
    bound = f"at {'least' if name.startswith('min') else 'most'} {kind.limit}"
    if name.endswith("Length"):
        size = "short" if name == "minLength" else "long"
        message, got = f"`{field}` is too {size}", f"{len(value)} characters"
        return document.fault("schema-length", message, *where, got=got, allowed=bound)
    if name in _SIGNS:
        allowed = f"{_SIGNS[name]} {kind.limit}"
        return document.fault("schema-range", f"`{field}` is out of range", *where, got=shown(value), allowed=allowed)
    size = "few" if name.startswith("min") else "many"
    message = f"`{field}` has too {size} entries"
    return document.fault("schema-length", message, *where, got=str(len(value)), allowed=bound)


def _any_of(
    document: Document,
    at: tuple[PathPart, ...],
    error: Any,
    schema: dict[str, Any],
    where: tuple[PathPart, ...],
    value: Any,
) -> Iterator[Fault]:
    """The errors of the branch that the author meant: the one whose type fits; else all types that would."""
    branches = [list(branch) for branch in error.kind.context]
    fitting = [b for b in branches if not any(e.kind.name == "type" and not _below(e, error) for e in b)]
    if len(fitting) >= 1:
        for inner in min(fitting, key=len):
            yield from explain(document, at, inner, schema)
        return
    types = [t for b in branches for e in b if e.kind.name == "type" for t in e.kind.types if t != "null"]
    field = next((part for part in reversed(where) if isinstance(part, str)), "the file")
    yield document.fault(
        "schema-type",
        f"`{field}` has a value of another type",
        *where,
        got=f"{shown(value)} ({type_name(value)})",
        allowed=_types(types),
        hint=_type_hint(value, types),
    )


def _below(inner: Any, outer: Any) -> bool:
    return len(inner.instance_path) > len(outer.instance_path)


def did_you_mean(got: Any, known: Any, *, cutoff: float = 0.6) -> str:
    """`did you mean x?`, or nothing when no known name is close to `got`."""
    if not isinstance(got, str):
        return ""
    import difflib

    close = difflib.get_close_matches(got, list(known), n=1, cutoff=cutoff)
    return f"did you mean `{close[0]}`?" if close else ""


def shown(value: Any) -> str:
    """A value as a fault shows it: JSON, cut at 60 characters."""
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= 60 else text[:57] + "..."


def type_name(value: Any) -> str:
    """What a person calls the type of a JSON value."""
    names = {bool: "boolean", dict: "object", list: "array", str: "string", int: "integer", float: "number"}
    return _TYPE_NAMES[names.get(type(value), "null")]


def _types(types: Any) -> str:
    return " or ".join(dict.fromkeys(_TYPE_NAMES.get(str(t), str(t)) for t in types))


def _type_hint(value: Any, types: Any) -> str:
    wanted = [str(t) for t in types]
    if "string" in wanted and isinstance(value, (int, float, bool)):
        return f'put it in quotes: "{orjson.dumps(value).decode()}"'
    if wanted == ["string"] and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"write one text: {' '.join(value)}"
    if "array" in wanted and isinstance(value, (str, int, float)):
        return f"write a list: [{value}]"
    if isinstance(value, str) and ("boolean" in wanted) and value.lower() in ("yes", "on", "no", "off", "y", "n"):
        return f"YAML 1.2 reads `{value}` as text; write {'true' if value.lower() in ('yes', 'on', 'y') else 'false'}"
    if value is None:
        return "give a value or remove the field"
    return ""


def _keys(value: Any) -> str:
    return ", ".join(value) if isinstance(value, dict) else ""


def _missing_hint(name: str, value: Any) -> str:
    if name == "apiVersion":
        return "every manifest begins with `apiVersion: harnessctl/v1` and `kind:`"
    if isinstance(value, dict):
        import difflib

        close = difflib.get_close_matches(name, list(value), n=1, cutoff=0.75)
        if close:
            return f"is `{close[0]}` meant to be `{name}`?"
    return f"add `{name}:`"


def _walk(schema: dict[str, Any], path: list[Any]) -> Any:
    node: Any = schema
    for part in path:
        while isinstance(node, dict) and "$ref" in node and part not in node:
            node = _walk(schema, node["$ref"].removeprefix("#/").split("/"))
        if (isinstance(node, dict) and part in node) or (isinstance(node, list) and isinstance(part, int)):
            node = node[part]
        elif part != "$ref":
            return None
    return node


def _properties(error: Any, schema: dict[str, Any]) -> list[str]:
    parent = _walk(schema, list(error.schema_path)[:-1])
    return list(parent.get("properties", {})) if isinstance(parent, dict) else []


def _description(error: Any, schema: dict[str, Any]) -> str:
    parent = _walk(schema, list(error.schema_path)[:-1])
    return str(parent.get("description", "")) if isinstance(parent, dict) else ""
