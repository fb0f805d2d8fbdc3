"""MCP tools: one listed tool as the project's Tool.

What always holds: what comes out fits the manifest's Tool and has parameters and result that are valid JSON Schemas
without references out of themselves; what was changed or left behind is a note.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import jsonschema_rs

from harnessctl.importing.mentions import mend
from harnessctl.importing.names import IDENTIFIER, MAX_NAME, identifier
from harnessctl.importing.report import Entry
from harnessctl.importing.sentences import cut
from harnessctl.importing.yaml_text import to_yaml

MAX_DESCRIPTION = 4096
_CARRIED = frozenset({"name", "description", "inputSchema", "outputSchema"})
_OLD_DRAFT = re.compile(r"draft-0[3467]|2019-09")
_KNOWN_DRAFT = re.compile(r"draft-0[3467]|2019-09|2020-12")
_OLD_WORDS = frozenset({"definitions", "dependencies", "additionalItems", "id", "$recursiveRef"})
_NO_SCHEMA = frozenset({"enum", "const", "default", "examples", "example", "required"})


class Unusable(Exception):
    """Why a listed tool cannot be a tool here."""


class ToolReader:
    """Reads the tools of one capture. `names` are all names that may not stand bare in a text; `renamed` maps names of
    the capture that the project has given to other tools already to what they are called instead."""

    def __init__(
        self, entry: Entry, names: Collection[str], renamed: Mapping[str, str], *, server: str, group: str
    ) -> None:
        self.entry = entry
        self.names = names
        self.renamed = renamed
        self.server = server
        self.group = group
        self.left: dict[str, int] = {}
        self.redeclared: dict[str, int] = {}
        self.guessed_writes = 0

    def read(self, raw: Any, line: int) -> dict[str, Any]:
        """The tool as a manifest's fields; Unusable says why it cannot be one."""
        plain = tool_name(raw)
        name = self.renamed.get(plain, plain)
        if plain != raw["name"]:
            self.entry.note(
                "changed",
                line,
                f"the tool {raw['name']!r} is called `{name}` here; the server is asked for its own name",
            )
        annotations = raw.get("annotations") if isinstance(raw.get("annotations"), dict) else {}
        out: dict[str, Any] = {
            "name": name,
            "description": self._description(raw, name, annotations, line),
            "group": self.group,
        }
        if self._writes(annotations):
            out["effect"] = "write"
        out["parameters"] = self._schema(raw.get("inputSchema"), "inputSchema", name, line)
        if isinstance(raw.get("outputSchema"), dict):
            out["result"] = self._schema(raw["outputSchema"], "outputSchema", name, line)
        mcp: dict[str, str] = {"server": self.server}
        if name != raw["name"]:
            mcp["tool"] = raw["name"]
        out["run"] = {"mcp": mcp}
        for key, value in raw.items():
            if key not in _CARRIED and value not in (None, {}, []):
                self.left[key] = self.left.get(key, 0) + 1
        try:
            to_yaml(out)
        except ValueError as error:
            raise Unusable(f"it cannot be written as YAML: {error}") from None
        return out

    def summary(self) -> None:
        """Notes on what holds for several tools of the capture."""
        for key, count in sorted(self.left.items()):
            kept = " (what it says of reading and writing is `effect`)" if key == "annotations" else ""
            self.entry.note("not carried over", 0, f"`{key}` of {_count(count)}{kept}")
        for draft, count in sorted(self.redeclared.items()):
            self.entry.note(
                "changed", 0, f"{count} schemas of {draft} are written without $schema: they say the same in 2020-12"
            )
        if self.guessed_writes:
            self.entry.note(
                "warning", 0,
                f"{_count(self.guessed_writes)} without a word on whether it changes anything: `effect: write` is written, as "
                f"the protocol has it; take it off where a tool only reads",
            )  # fmt: skip

    def _description(self, raw: dict[str, Any], name: str, annotations: dict[str, Any], line: int) -> str:
        given = raw.get("description")
        text = given.strip() if isinstance(given, str) else ""
        if not text:
            title = raw.get("title") or annotations.get("title")
            text = title.strip() if isinstance(title, str) and title.strip() else _spelled(name)
            self.entry.note("changed", line, f"the tool `{name}` has no description; it is described as {text!r}")
        if len(text) > MAX_DESCRIPTION:
            shorter = cut(text, MAX_DESCRIPTION)
            self.entry.note(
                "changed", line, f"the description of `{name}` was cut from {len(text)} to {len(shorter)} characters"
            )
            text = shorter
        return self._mended(text, name, line)

    def _mended(self, text: str, name: str, line: int) -> str:
        mended = mend(text, self.names, renamed=self.renamed)
        if mended.stuck:
            stuck = mended.stuck[0]
            raise Unusable(
                f"a description mentions the known name `{stuck.name}` {stuck.place}, where it cannot be put into a code span"
            )
        for _, written in mended.done:
            self.entry.note("changed", line, f"in a description of `{name}` a mention was written {written}")
        return mended.text

    def _writes(self, annotations: dict[str, Any]) -> bool:
        read_only = annotations.get("readOnlyHint")
        if read_only is None and annotations.get("destructiveHint") is None:
            self.guessed_writes += 1
        return read_only is not True

    def _schema(self, schema: Any, field: str, name: str, line: int) -> dict[str, Any]:
        if not isinstance(schema, dict):
            raise Unusable(f"it has no {field}" if schema is None else f"its {field} is no object")
        out: dict[str, Any] = self._texts(schema, name, line)
        declared = str(out.get("$schema") or "")
        if declared and not _KNOWN_DRAFT.search(declared):
            raise Unusable(f"its {field} is of a draft that is not known: {declared}")
        if out.get("type", "object") != "object":
            raise Unusable(f"its {field} is of type {out['type']!r}, not an object")
        if remote := next((ref for ref in _references(out) if not ref.startswith("#")), None):
            raise Unusable(f"its {field} refers to {remote}, outside of itself")
        try:
            jsonschema_rs.validator_for(out, offline=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise Unusable(f"its {field} is not a JSON Schema: {str(error).partition(chr(10))[0][:120]}") from None
        if declared and not (_OLD_DRAFT.search(declared) and _differs(out)):
            del out["$schema"]
            if draft := _OLD_DRAFT.search(declared):
                self.redeclared[draft[0]] = self.redeclared.get(draft[0], 0) + 1
        self._undeclared(out, field, name, line)
        return out

    def _undeclared(self, schema: dict[str, Any], field: str, name: str, line: int) -> None:
        """`required` names declared parameters only: the compiler takes others for mistakes."""
        properties, required = schema.get("properties", {}), schema.get("required")
        if field != "inputSchema" or not isinstance(required, list):
            return
        gone = [str(item) for item in required if item not in properties]
        if gone:
            schema["required"] = [item for item in required if item in properties]
            self.entry.note(
                "not carried over", line, f"`{name}` requires parameters that it does not declare: {', '.join(gone)}"
            )

    def _texts(self, node: Any, name: str, line: int) -> Any:
        """The schema with the mentions in its descriptions in code spans."""
        if isinstance(node, list):
            return [self._texts(item, name, line) for item in node]
        if not isinstance(node, dict):
            return node
        out: dict[str, Any] = {}
        for key, value in node.items():
            if key == "description" and isinstance(value, str):
                out[key] = self._mended(value, name, line)
            elif key in _NO_SCHEMA and not (key == "required" and isinstance(value, dict)):
                out[key] = value
            else:
                out[key] = self._texts(value, name, line)
        return out


def tool_name(raw: Any) -> str:
    """What a listed tool is called here; Unusable when it is none."""
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        raise Unusable("it has no name")
    if isinstance(raw.get("source"), str) and isinstance(raw.get("server"), dict):
        raise Unusable(
            f"it is made from another tool ({raw['source']}) by a proxy; the server has no tool of this name"
        )
    name = raw["name"] if IDENTIFIER.match(raw["name"]) and len(raw["name"]) <= MAX_NAME else identifier(raw["name"])
    if not name:
        raise Unusable(f"nothing of its name {raw['name']!r} can stand in a name that a model calls")
    return name


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [ref for key, value in node.items() if key not in _NO_SCHEMA for ref in _references(value)]
    return [ref for item in node for ref in _references(item)] if isinstance(node, list) else []


def _differs(node: Any, *, schema: bool = True) -> bool:
    """Whether a schema of an older draft uses something that 2020-12 writes in another way."""
    if isinstance(node, list):
        return any(_differs(item) for item in node)
    if not isinstance(node, dict):
        return False
    if schema:
        old = _OLD_WORDS & node.keys() or isinstance(node.get("items"), list)
        flagged = any(isinstance(node.get(key), bool) for key in ("exclusiveMinimum", "exclusiveMaximum"))
        if old or flagged or ("$ref" in node and len(node) > 1):
            return True
    return any(
        _differs(value, schema=key not in ("properties", "patternProperties", "$defs"))
        for key, value in node.items()
        if key not in _NO_SCHEMA
    )


def _spelled(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_.-]+", " ", name)).strip()
    return words[:1].upper() + words[1:]


def _count(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"
