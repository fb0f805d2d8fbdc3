"""Law c: on structured fields canonical -> surface -> canonical is the identity, and a hidden name means nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnessctl.augment.laws.broken import Broken
from harnessctl.augment.laws.known import Case
from harnessctl.bundle.state import Tool

#: What model interfaces take as a function's name, which is less than what manifests take.
_CALLABLE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SLUG = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(-[a-z0-9]+)*")


def check(case: Case) -> list[Broken]:
    """What breaks law c."""
    return [Broken("c", place, reason) for place, reason in _faults(case)]


def _faults(case: Case) -> Iterator[tuple[str, str]]:
    view, surface = case.view, case.variant.surface
    tools = {tool.name: tool for tool in case.variant.tools}
    skills = {skill.name for skill in case.variant.skills}
    for name in surface.tools.keys() - tools.keys():
        yield f"surface/tools/{name}", "is a name for a tool that is not there"
    for name in surface.skills.keys() - skills:
        yield f"surface/skills/{name}", "is a name for a skill that is not there"
    for name in surface.parameters.keys() - tools.keys():
        yield f"surface/parameters/{name}", "are names for the parameters of a tool that is not there"
    for name, tool in tools.items():
        place = f"surface/tools/{name}"
        shown = view.tool_name(name)
        if view.tool_to_canonical(shown) != name:
            yield place, f"`{shown}` means {view.tool_to_canonical(shown)}"
        if shown != name:
            if (other := view.tool_to_canonical(name)) is not None:
                yield place, f"is hidden, and a call of `{name}` reaches {other}"
            if not _CALLABLE.fullmatch(shown):
                yield place, f"`{shown}` is no name that a model can call"
        if surface.parameters.get(name) or tool is view.load_skill:
            yield from _arguments(case, tool)
    for name in skills:
        place = f"surface/skills/{name}"
        shown = view.skill_name(name)
        if view.skill_to_canonical(shown) != name:
            yield place, f"`{shown}` means {view.skill_to_canonical(shown)}"
        if shown != name:
            if (other := view.skill_to_canonical(name)) is not None:
                yield place, f"is hidden, and `{name}` loads {other}"
            if not _SLUG.fullmatch(shown):
                yield place, f"`{shown}` is no slug"
    if case.thorough:
        yield from _examples(case)


def _arguments(case: Case, tool: Tool) -> Iterator[tuple[str, str]]:
    view = case.view
    renames = case.variant.surface.parameters.get(tool.name, {})
    properties = tool.parameters.get("properties", {})
    place = f"surface/parameters/{tool.name}"
    arguments = {name: number for number, name in enumerate((*properties, *(renames.keys() - properties.keys())))}
    shown = view.args_to_surface(tool.name, arguments)
    if len(shown) != len(arguments) or view.args_to_canonical(tool.name, dict(shown)) != arguments:
        yield place, "arguments do not come back as they were"
    for name, new in renames.items():
        if name not in properties:
            yield f"{place}/{name}", "is a name for a parameter that is not there"
        if new != name:
            hidden = view.args_to_canonical(tool.name, {name: 0})
            if hidden is not None:
                yield f"{place}/{name}", f"is hidden, and an argument of this name reaches {', '.join(hidden)}"
            if not _PROPERTY.fullmatch(new):
                yield f"{place}/{name}", f"`{new}` is no name of a parameter"
    if tool is view.load_skill:
        yield from _skill_argument(case, tool)


def _skill_argument(case: Case, tool: Tool) -> Iterator[tuple[str, str]]:
    view = case.view
    place = f"tools/{tool.name}/parameters"
    names = [view.skill_name(skill.name) for skill in case.variant.skills]
    node = view.schemas[tool.name].get("properties", {}).get(view.load_skill_shown)
    if not isinstance(node, dict) or node.get("enum") != names:
        yield place, "the argument does not list the skills on offer"
    for skill in case.variant.skills:
        shown = view.args_to_surface(tool.name, {view.load_skill_argument: skill.name})
        if shown != {view.load_skill_shown: view.skill_name(skill.name)}:
            yield place, f"{skill.name} is shown as {shown}"
        elif view.args_to_canonical(tool.name, shown) != {view.load_skill_argument: skill.name}:
            yield place, f"{shown} does not come back as {skill.name}"


def _examples(case: Case) -> Iterator[tuple[str, str]]:
    for skill in case.variant.skills:
        for number, example in enumerate(skill.examples):
            for call in (call for message in example for call in message.calls):
                arguments = call.get("arguments", {})
                shown = case.view.args_to_surface(call["tool"], arguments)
                if case.view.args_to_canonical(call["tool"], shown) != arguments:
                    yield f"skills/{skill.name}/examples/{number}", f"the call of {call['tool']} does not come back"
