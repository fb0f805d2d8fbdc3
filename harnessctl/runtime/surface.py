"""Surface: everything a model sees of a harness state, rendered once, and the way back to canonical names.

What always holds: text changes only through its `Ref`s; canonical -> surface -> canonical is the identity on names and
arguments; a name that is no surface name maps to None, so a renamed tool cannot be called by its canonical name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from harnessctl.bundle.state import HarnessState, Skill, Tool
from harnessctl.bundle.text import Text, render_text
from harnessctl.errors import BundleError

_CODE_SPAN = re.compile(r"`(?:(tool|skill):)?([^`\n]+)`")
#: Keywords whose subschemas speak of the same object, so that its property names occur in them too.
_SAME_OBJECT_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_OBJECT = ("not", "if", "then", "else")


class SurfaceView:
    """What a model sees of `state`. BundleError when two tools or two skills share one surface name.

    `tools` is the OpenAI tool list: descriptions at their places, parameters renamed, the argument of `load_skill` an
    enum of the skills on offer; without skills `load_skill` is left out. `tools_json` is the same, encoded.
    """

    def __init__(self, state: HarnessState) -> None:
        self.state = state
        self.limits = state.limit_values()
        self._tool_names = state.surface.tools
        self._skill_names = state.surface.skills
        self._tool_back = _inverse({t.name: self.tool_name(t.name) for t in state.tools}, "tools")
        self._skill_back = _inverse({s.name: self.skill_name(s.name) for s in state.skills}, "skills")
        self._parameters = {name: dict(renames) for name, renames in state.surface.parameters.items() if renames}
        self._parameters_back = {
            t.name: _parameters_back(t, self._parameters[t.name]) for t in state.tools if t.name in self._parameters
        }
        self._skills = {s.name: s for s in state.skills}
        self.load_skill: Tool | None = next((t for t in state.tools if _is_load_skill(t)), None)
        self.load_skill_argument = _skill_argument(self.load_skill)
        #: The same argument as the model knows it.
        self.load_skill_shown = (
            self._parameters.get(self.load_skill.name, {}).get(self.load_skill_argument, self.load_skill_argument)
            if self.load_skill
            else self.load_skill_argument
        )
        self.schemas: dict[str, dict[str, Any]] = {t.name: self._surface_parameters(t) for t in state.tools}
        self.tools: list[dict[str, Any]] = [
            self._openai_tool(t) for t in state.tools if state.skills or not _is_load_skill(t)
        ]
        self.tools_json: bytes = orjson.dumps(self.tools)
        self.skill_offers: list[dict[str, str]] = [
            {"name": self.skill_name(s.name), "description": self.render(s.description), "kind": s.kind}
            for s in state.skills
        ]
        self._bodies: dict[str, str] = {}

    def render(self, text: Text) -> str:
        """`text` as the model reads it."""
        return render_text(text, tools=self._tool_names, skills=self._skill_names, limits=self.limits)

    def shown(self, text: str) -> str:
        """A text made at run time with canonical names, as the model reads it: those in code spans change, bare words stay."""

        def span(found: re.Match[str]) -> str:
            kind, name = found.groups()
            if kind != "skill" and name in self.schemas:
                return f"`{self.tool_name(name)}`"
            if kind != "tool" and name in self._skills:
                return f"`{self.skill_name(name)}`"
            return found[0]

        return _CODE_SPAN.sub(span, text) if "`" in text else text

    def tool_name(self, canonical: str) -> str:
        """What the model calls a tool."""
        return self._tool_names.get(canonical, canonical)

    def skill_name(self, canonical: str) -> str:
        """What the model calls a skill."""
        return self._skill_names.get(canonical, canonical)

    def tool_to_canonical(self, name: str) -> str | None:
        """The tool that the model means, or None when it is offered under no such name."""
        return self._tool_back.get(name)

    def skill_to_canonical(self, name: str) -> str | None:
        """The skill that the model means, or None when it is offered under no such name."""
        return self._skill_back.get(name)

    def args_to_surface(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """Canonical arguments of a canonical tool, as the model would write them."""
        out = self._map_skill(tool, dict(args), self._skill_names)
        renames = self._parameters.get(tool)
        return {renames.get(key, key): value for key, value in out.items()} if renames else out

    def args_to_canonical(self, tool: str, args: dict[str, Any]) -> dict[str, Any] | None:
        """What the model wrote as canonical arguments; None when it used the hidden canonical name of a parameter.

        Names that are nobody's stay as they are, for the schema check to refuse. `args` may be given back itself.
        """
        renames = self._parameters_back.get(tool)
        if renames is None:
            if self.load_skill is None or tool != self.load_skill.name:
                return args
            out = dict(args)
        else:
            hidden = self._parameters[tool]
            if any(key in hidden and key not in renames for key in args):
                return None
            out = {renames.get(key, key): value for key, value in args.items()}
        return self._map_skill(tool, out, self._skill_back)

    def skill_body(self, name: str) -> str:
        """The body of a skill (canonical name) and its examples, in surface names."""
        body = self._bodies.get(name)
        if body is None:
            body = self._bodies[name] = self._render_body(self._skills[name])
        return body

    def _map_skill(self, tool: str, args: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
        if self.load_skill is not None and tool == self.load_skill.name:
            value = args.get(self.load_skill_argument)
            if isinstance(value, str) and value in names:
                args[self.load_skill_argument] = names[value]
        return args

    def _openai_tool(self, tool: Tool) -> dict[str, Any]:
        return {
            "type": "function",
            "function": {
                "name": self.tool_name(tool.name),
                "description": self.render(tool.description),
                "parameters": self.schemas[tool.name],
            },
        }

    def _surface_parameters(self, tool: Tool) -> dict[str, Any]:
        schema: dict[str, Any] = _copied(tool.parameters) or {"type": "object", "properties": {}}
        for pointer, text in tool.docs.items():
            node = _at(schema, pointer)
            if node is None:
                raise BundleError(
                    f"tool {tool.name}: a description at {pointer!r}, where its parameters have no schema"
                )
            node["description"] = self.render(text)
        if tool is self.load_skill:
            node = schema.setdefault("properties", {}).setdefault(self.load_skill_argument, {"type": "string"})
            node["enum"] = [self.skill_name(s.name) for s in self.state.skills]
        order = self.state.surface.parameter_order.get(tool.name)
        if order is not None:
            schema["properties"] = {name: schema["properties"][name] for name in order}
        renames = self._parameters.get(tool.name)
        return _rename_properties(schema, renames) if renames else schema

    def _render_body(self, skill: Skill) -> str:
        rules = {rule.id: rule for rule in skill.rules}
        out = ""
        for part in skill.body:
            out += self.render(part.text)
            if part.rules:
                out += "" if not out or out.endswith("\n") else "\n"
                for number, rule in enumerate(part.rules, 1):
                    marker = "- " if part.marker == "-" else f"{number}. "
                    text = self.render(rules[rule].text).replace("\n", "\n" + " " * len(marker))
                    out += f"{marker}{text}\n"
        examples = [self._render_example(number, skill) for number in range(len(skill.examples))]
        return "\n\n".join([out.strip("\n"), *examples])

    def _render_example(self, number: int, skill: Skill) -> str:
        lines = ["## Example" if len(skill.examples) == 1 else f"## Example {number + 1}"]
        for message in skill.examples[number]:
            content = self.render(message.content)
            for call in message.calls:
                arguments = orjson.dumps(self.args_to_surface(call["tool"], call.get("arguments", {}))).decode()
                lines.append(f"assistant calls `{self.tool_name(call['tool'])}` with {arguments}")
            if content:
                lines.append(f"{message.role}: {content}")
        return "\n".join(lines)


def _is_load_skill(tool: Tool) -> bool:
    return tool.run is not None and tool.run.get("builtin") == "load_skill"


def _skill_argument(tool: Tool | None) -> str:
    """The parameter of `load_skill` that names the skill: `skill`, or the only one there is."""
    properties = list((tool.parameters if tool else {}).get("properties", {}))
    return properties[0] if len(properties) == 1 else "skill"


def _inverse(names: Mapping[str, str], what: str) -> dict[str, str]:
    back: dict[str, str] = {}
    for canonical, surface in names.items():
        if surface in back:
            raise BundleError(
                f"surface of the {what}: {back[surface]!r} and {canonical!r} are both shown as {surface!r}"
            )
        back[surface] = canonical
    return back


def _parameters_back(tool: Tool, renames: Mapping[str, str]) -> dict[str, str]:
    """Surface to canonical for the renamed parameters; BundleError when a new name is taken by another parameter."""
    properties = tool.parameters.get("properties", {})
    _inverse({name: renames.get(name, name) for name in {**properties, **renames}}, f"parameters of {tool.name}")
    return {surface: canonical for canonical, surface in renames.items()}


def _copied(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with dicts and lists of its own; by way of its text, several times as fast as member by member."""
    try:
        return orjson.loads(orjson.dumps(schema))
    except TypeError:  # an integer beyond 64 bits
        return _copied_by_member(schema)


def _copied_by_member(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied_by_member(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    if isinstance(value, list):
        return [_copied_by_member(item) if isinstance(item, (dict, list)) else item for item in value]
    return value


def _at(schema: dict[str, Any], pointer: str) -> dict[str, Any] | None:
    """The schema node at a JSON Pointer, or None."""
    node: Any = schema
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(step)
        elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node if isinstance(node, dict) else None


def _rename_properties(schema: dict[str, Any], renames: Mapping[str, str]) -> dict[str, Any]:
    """`schema` with the top-level properties of its object renamed wherever they are named."""
    out = dict(schema)
    for keyword in ("properties", "dependentRequired", "dependentSchemas"):
        if isinstance(out.get(keyword), dict):
            out[keyword] = {renames.get(name, name): value for name, value in out[keyword].items()}
    if isinstance(out.get("required"), list):
        out["required"] = [renames.get(name, name) for name in out["required"]]
    if isinstance(out.get("dependentRequired"), dict):
        out["dependentRequired"] = {
            name: [renames.get(n, n) for n in needed] for name, needed in out["dependentRequired"].items()
        }
    if isinstance(out.get("dependentSchemas"), dict):
        out["dependentSchemas"] = {
            name: _rename_properties(value, renames) if isinstance(value, dict) else value
            for name, value in out["dependentSchemas"].items()
        }
    for keyword in _SAME_OBJECT_LISTS:
        if isinstance(out.get(keyword), list):
            out[keyword] = [_rename_properties(s, renames) if isinstance(s, dict) else s for s in out[keyword]]
    for keyword in _SAME_OBJECT:
        if isinstance(out.get(keyword), dict):
            out[keyword] = _rename_properties(out[keyword], renames)
    return out
