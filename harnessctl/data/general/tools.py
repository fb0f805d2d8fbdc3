"""Tools: made-up tools with a few typed parameters, and wishes from which a call's arguments can be copied.

What always holds: a tool's parameters are of kinds that differ, so that what a wish says belongs to one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harnessctl.data.general.concepts import Concept
from harnessctl.data.general.dialogue import Call
from harnessctl.data.general.listing import wish_about
from harnessctl.data.general.source import Source

Kind = Literal["integer", "string", "enum"]
_KINDS: tuple[Kind, ...] = ("integer", "string", "enum")


@dataclass(slots=True, frozen=True)
class Parameter:
    """A parameter; `options` are the values of an enum."""

    name: str
    kind: Kind
    required: bool
    options: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        return {"enum": list(self.options)} if self.kind == "enum" else {"type": self.kind}


@dataclass(slots=True, frozen=True)
class Tool:
    """A tool and the matter that it is for."""

    name: str
    description: str
    concept: Concept
    parameters: tuple[Parameter, ...]

    @property
    def told(self) -> dict[str, Any]:
        """The tool as a request tells of it."""
        return function_tool(self.name, self.description, self.parameters)


def function_tool(name: str, description: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """An OpenAI function tool."""
    schema: dict[str, Any] = {"type": "object", "properties": {p.name: p.schema for p in parameters}}
    required = [p.name for p in parameters if p.required]
    if required:
        schema["required"] = required
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def make_tools(source: Source, concepts: Sequence[Concept], *, taken: Sequence[str] = ()) -> list[Tool]:
    """A tool for each of `concepts`; no two have one name, and none one that is `taken`."""
    names = source.names.several(len(concepts) + len(taken), joiner="_")
    free = [name for name in names if name not in taken]
    return [
        Tool(name, source.chance.choice(concept.about), concept, _parameters(source))
        for name, concept in zip(free, concepts, strict=False)
    ]


def _parameters(source: Source) -> tuple[Parameter, ...]:
    chance = source.chance
    kinds = chance.sample(_KINDS, chance.choice((0, 1, 1, 1, 2)))
    names = source.names.several(len(kinds), joiner="_")
    return tuple(
        Parameter(
            name,
            kind,
            required=chance.random() < 0.6,
            options=tuple(source.names.several(chance.randint(2, 5))) if kind == "enum" else (),
        )
        for name, kind in zip(names, kinds, strict=True)
    )


def wished(source: Source, tool: Tool, *, whole: bool = True) -> tuple[str, Call]:
    """(wish, the call that it asks for): what the wish says beyond its matter are the arguments.

    A required text of which the wish says nothing is the wish itself, word for word; `whole` false: never asked for.
    """
    chance = source.chance
    ask = wish_about(tool.concept, chance)
    only = tool.parameters[0] if len(tool.parameters) == 1 else None
    if whole and only is not None and only.kind == "string" and only.required and chance.random() < 0.4:
        return ask, Call(tool.name, {only.name: ask})
    arguments = {p.name: _value(source, p) for p in tool.parameters if p.required or chance.random() < 0.5}
    if not arguments:
        return ask, Call(tool.name, {})
    form = chance.choice(("{value}", "{value}", "{name} {value}", "{name}: {value}"))
    said = ", ".join(form.format(name=name, value=value) for name, value in arguments.items())
    wish = chance.choice(("{ask} {said}", "{ask} ({said})", "{said}: {ask}", "{said}, {ask}"))
    return wish.format(ask=ask, said=said), Call(tool.name, arguments)


def _value(source: Source, parameter: Parameter) -> Any:
    chance = source.chance
    if parameter.kind == "integer":
        return chance.randrange(10 ** chance.choice((1, 2, 2, 3)))
    if parameter.kind == "enum":
        return chance.choice(parameter.options)
    return source.names.one()


def make_result(source: Source, key: str) -> dict[str, Any]:
    """A tool's result: numbers, names and phrases under `key` and one to four other keys."""
    keys = [key, *(name for name in source.names.several(source.chance.randint(1, 4), joiner="_") if name != key)]
    source.chance.shuffle(keys)
    return {name: result_value(source) for name in keys}


def result_value(source: Source) -> Any:
    """A number, a name or a phrase."""
    chance = source.chance
    return chance.choice((source.names.one, source.names.phrase, lambda: chance.randrange(1000)))()
