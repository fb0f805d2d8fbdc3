"""JSON Schemas inside manifests: any draft in, draft 2020-12 out, without the words that only a reader needs.

What always holds: what comes out is a valid draft 2020-12 schema whose references resolve within itself; it carries no
title, description, example or comment; each description is kept apart with the JSON Pointer of its node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harnessctl.errors import Faults
from harnessctl.manifests.load import Document, PathPart

META = "https://json-schema.org/draft/2020-12/schema"
_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07", "2019-09", "2020-12")
_REF_ALONE = ("draft-03", "draft-04", "draft-06", "draft-07")
_DROPPED = frozenset({"$schema", "$comment", "title", "description", "examples", "example", "$id", "id"})
_NULLABLE = frozenset({"const", "default", *_DROPPED})
_MAPS = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset(
    {
        "items",
        "additionalProperties",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    }
)

Path = tuple[PathPart, ...]


@dataclass(slots=True)
class Rewritten:
    """A schema as the state keeps it. `docs` maps the JSON Pointer of a node to the document path of its description."""

    schema: dict[str, Any]
    docs: dict[str, Path] = field(default_factory=dict)


def rewrite(document: Document, faults: Faults, *at: PathPart) -> Rewritten | None:
    """The schema at a path of the document, or None with a fault for everything that is wrong with it."""
    source = document.get(*at)
    declared = source.get("$schema") if isinstance(source, dict) else None
    if declared is not None and not any(draft in str(declared) for draft in _DRAFTS):
        faults.add(
            document.fault(
                "json-schema",
                "an unknown draft of JSON Schema",
                *at,
                "$schema",
                got=str(declared),
                allowed="draft-04, draft-06, draft-07, 2019-09, 2020-12",
                hint="remove $schema: 2020-12 is meant",
            )
        )
        return None
    writer = _Writer(ref_alone=any(draft in str(declared) for draft in _REF_ALONE))
    schema = writer.node(source, at, ())
    if not _check(document, schema, writer, at, faults):
        return None
    for where in writer.empty:
        faults.add(
            document.fault(
                "json-schema",
                f"{where[-1]!r} has no value, and is no keyword of a schema",
                *where,
                key=True,
                hint="quote a description that holds a comma",
                severity="warning",
            )
        )
    docs = {pointer(new): where for new, where in writer.docs.items()}
    return Rewritten(schema, docs)


def pointer(path: Path) -> str:
    """The JSON Pointer of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


class _Writer:
    """Rewrites a schema node by node and keeps where each came from."""

    def __init__(self, *, ref_alone: bool) -> None:
        self.ref_alone = ref_alone
        self.origin: dict[Path, Path] = {}
        self.docs: dict[Path, Path] = {}
        #: Keywords without a value: what is left of a text that a comma cut in two.
        self.empty: list[Path] = []

    def node(self, source: Any, old: Path, new: Path) -> Any:
        """The node at `old` of the document as it stands at `new` of the schema."""
        self.origin[new] = old
        if not isinstance(source, dict):
            return source
        if isinstance(source.get("description"), str):
            self.docs[new] = (*old, "description")
        if self.ref_alone and "$ref" in source:
            return {"$ref": _reference(source["$ref"])}
        out: dict[str, Any] = {}
        for key, value in source.items():
            if value is None and key not in _NULLABLE:
                self.empty.append((*old, key))
            if key not in _DROPPED:
                self._keyword(source, key, value, (*old, key), new, out)
        return out

    def _keyword(self, source: dict[str, Any], key: str, value: Any, old: Path, new: Path, out: dict[str, Any]) -> None:
        if key == "$ref":
            out[key] = _reference(value)
        elif key == "definitions" and isinstance(value, dict):
            out.setdefault("$defs", {}).update(self._map(value, old, (*new, "$defs")))
        elif key in _MAPS and isinstance(value, dict):
            out.setdefault(key, {}).update(self._map(value, old, (*new, key)))
        elif key == "items" and isinstance(value, list):
            out["prefixItems"] = self._list(value, old, (*new, "prefixItems"))
            if "additionalItems" in source:
                rest = (*old[:-1], "additionalItems")
                out["items"] = self.node(source["additionalItems"], rest, (*new, "items"))
        elif key == "additionalItems":
            return
        elif key in _LISTS and isinstance(value, list):
            out[key] = self._list(value, old, (*new, key))
        elif key in _SINGLE:
            out[key] = self.node(value, old, (*new, key))
        elif key == "dependencies" and isinstance(value, dict):
            for name, needed in value.items():
                kind = "dependentRequired" if isinstance(needed, list) else "dependentSchemas"
                part = needed if isinstance(needed, list) else self.node(needed, (*old, name), (*new, kind, name))
                out.setdefault(kind, {})[name] = part
        elif key in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
            bound = "minimum" if key == "exclusiveMinimum" else "maximum"
            if value and bound in source:
                out[key] = source[bound]
                out.pop(bound, None)
        elif key in ("minimum", "maximum") and source.get("exclusive" + key.capitalize()) is True:
            return
        else:
            self.origin[(*new, key)] = old
            out[key] = value

    def _map(self, value: dict[str, Any], old: Path, new: Path) -> dict[str, Any]:
        return {name: self.node(node, (*old, name), (*new, name)) for name, node in value.items()}

    def _list(self, value: list[Any], old: Path, new: Path) -> list[Any]:
        return [self.node(node, (*old, n), (*new, n)) for n, node in enumerate(value)]

    def where(self, new: Path) -> Path:
        """The document path of a path in the rewritten schema."""
        for length in range(len(new), -1, -1):
            if new[:length] in self.origin:
                return (*self.origin[new[:length]], *new[length:])
        return new


def _reference(value: Any) -> Any:
    return value.replace("#/definitions/", "#/$defs/") if isinstance(value, str) else value


def _check(document: Document, schema: Any, writer: _Writer, at: Path, faults: Faults) -> bool:
    import jsonschema_rs

    before = len(faults.items)
    checker = jsonschema_rs.validator_for({"$ref": META}, offline=True)
    for error in checker.iter_errors(schema):
        where = writer.where(tuple(error.instance_path))
        message = _innermost(error).message
        faults.add(document.fault("json-schema", "not a JSON Schema", *where, got=message[:120]))
    for target, where in _references(schema, ()):
        if not target.startswith("#"):
            faults.add(
                document.fault(
                    "json-schema",
                    "a reference leads out of the schema",
                    *writer.where(where),
                    "$ref",
                    got=target,
                    allowed="#/$defs/name",
                    hint="copy the definition under $defs",
                )
            )
        elif not _resolves(schema, target):
            faults.add(
                document.fault(
                    "json-schema",
                    "a reference leads to nothing",
                    *writer.where(where),
                    "$ref",
                    got=target,
                    allowed=", ".join(f"#/$defs/{name}" for name in schema.get("$defs", {})) or "#/$defs/name",
                )
            )
    if len(faults.items) == before:
        try:
            jsonschema_rs.validator_for(schema, offline=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            faults.add(document.fault("json-schema", "not a JSON Schema", *at, got=str(error).split("\n")[0][:120]))
    return len(faults.items) == before


def _innermost(error: Any) -> Any:
    if error.kind.name == "anyOf":
        branches = [branch for branch in error.kind.context if branch]
        if branches:
            return branches[0][0]
    return error


def _references(node: Any, at: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"], at
        for key, value in node.items():
            if key not in ("const", "enum", "default"):
                yield from _references(value, (*at, key))
    elif isinstance(node, list):
        for n, value in enumerate(node):
            yield from _references(value, (*at, n))


def _resolves(schema: Any, target: str) -> bool:
    node = schema
    if target == "#":
        return True
    if not target.startswith("#/"):
        return True  # an anchor: the validator knows
    for part in target[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        else:
            return False
    return True
