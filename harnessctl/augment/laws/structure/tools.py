"""Tools: each is the parent's, in the state and as a model is shown it; or a distractor that the record has."""

from __future__ import annotations

from typing import Any

from harnessctl.augment.laws.known import Case
from harnessctl.augment.laws.schemas import difference
from harnessctl.augment.laws.structure.comparing import Fields, Found, in_order, others, text
from harnessctl.bundle.state import Tool

_TOOL = Fields(
    "name",
    "group",
    "tags",
    "effect",
    "parameters",
    "result",
    "run",
    "simulate",
    "timeout_s",
    "retries",
    "final",
)


def check_tools(case: Case) -> Found:
    """Tools of the state that are not as they should be."""
    known, variant, changes = case.known, case.variant, case.changes
    added = {tool.name: tool for tool in changes.added_tools}
    names = [tool.name for tool in variant.tools]
    yield from in_order("tools", names, changes.tool_order or [*known.tool_order, *added])
    tools = {tool.name: tool for tool in variant.tools}
    for name in known.tools.keys() - tools.keys():
        yield f"tools/{name}", "is gone"
    for name, tool in tools.items():
        old = known.tools.get(name)
        if old is None:
            if added.get(name) != tool:
                yield f"tools/{name}", "is neither the parent's nor a recorded distractor"
        elif tool is not old:
            yield from _tool(case, old, tool)


def check_shown(case: Case) -> Found:
    """What a model is offered is the parent's tools."""
    seen = {tool["function"]["name"]: tool["function"]["parameters"] for tool in case.view.tools}
    for tool in case.variant.tools:
        name = tool.name
        old = case.known.tools.get(name)
        if old is None:
            continue
        schema = seen.get(case.view.tool_name(name))
        if schema is not None:
            yield from _seen(case, old, tool, schema)
        elif tool is not case.view.load_skill:
            yield f"tools/{name}", "is not offered"


def _tool(case: Case, old: Tool, new: Tool) -> Found:
    place = f"tools/{old.name}/"
    yield from others(old, new, _TOOL, place)
    yield from text(case, f"{place}description", old.description, new.description)
    if new.docs is not old.docs:
        for pointer in old.docs.keys() ^ new.docs.keys():
            yield f"{place}docs{pointer}", "is described in only one of parent and variant"
        for pointer in old.docs.keys() & new.docs.keys():
            yield from text(case, f"{place}docs{pointer}", old.docs[pointer], new.docs[pointer])


def _seen(case: Case, old: Tool, tool: Tool, schema: dict[str, Any]) -> Found:
    renames = case.variant.surface.parameters.get(old.name)
    back = {shown: name for name, shown in renames.items()} if renames else {}
    argument = case.view.load_skill_argument if case.view.load_skill is tool else None
    whole: dict[str, Any] = old.parameters or {"type": "object", "properties": {}}
    if argument is not None and argument not in whole.get("properties", {}):
        whole = {**whole, "properties": {**whole.get("properties", {}), argument: {"type": "string"}}}
    where = difference(whole, schema, back, enum_of=argument)
    if where is not None:
        yield f"tools/{old.name}/parameters{where}", "is not what the parent's schema has there"
