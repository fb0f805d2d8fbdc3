"""Built-in tools: what `load_skill` and `search_faq` need of the harness and of their own parameters."""

from __future__ import annotations

from typing import Any

from harnessctl.compile.load_skill import LOAD_SKILL
from harnessctl.compile.scope import listed
from harnessctl.compile.target import Target
from harnessctl.compile.unit import fault_at
from harnessctl.errors import Faults


def check_builtins(target: Target, faults: Faults) -> None:
    """Check the tools of a harness that load skills and search its world's FAQ."""
    assert target.plan is not None
    loads = [t for t in target.scope.tools.values() if t["builtin"] == LOAD_SKILL]
    for tool in loads[1:]:
        faults.add(
            fault_at(tool["place"], "tool-duplicate", "two tools load skills", tool["name"], "one builtin load_skill")
        )
    named = target.scope.tools.get(LOAD_SKILL)
    if not loads and target.scope.skills and named is not None:
        faults.add(
            fault_at(
                named["place"],
                "tool-duplicate",
                "a tool has the name of the one that loads skills",
                LOAD_SKILL,
                "run: {builtin: load_skill}",
                "rename the tool, or make it the builtin",
            )
        )
    for tool in loads:
        properties = tool["parameters"].get("properties", {})
        if tool["parameters"] and len(properties) != 1 and "skill" not in properties:
            faults.add(
                fault_at(
                    tool["place"],
                    "tool-parameters",
                    "the tool that loads skills has a parameter for the skill",
                    listed(properties),
                    "skill, or one parameter alone",
                )
            )
        shown = properties.get("skill", next(iter(properties.values()), None))
        if wrong := _other_type(shown, "string"):
            message = "the parameter for the skill is its name"
            faults.add(fault_at(tool["place"], "tool-parameters", message, wrong, "type: string"))
    worlds = target.units["World"]
    world = worlds[0].outline if worlds else {}
    for tool in target.scope.tools.values():
        if tool.get("searches") and world.get("faq"):
            _faq_parameters(tool, world["filters"], faults)
        elif tool.get("searches"):
            faults.add(
                fault_at(
                    tool["place"],
                    "tool-world",
                    f"`{tool['name']}` searches a FAQ that there is not",
                    target.plan.spec.world or "no world",
                    "a harness whose world has a faq",
                )
            )


def _other_type(schema: Any, *types: str) -> str:
    """The type that a schema declares, where it is none of `types`; null beside one of them is none of the model's."""
    declared = schema.get("type") if isinstance(schema, dict) else None
    given = declared if isinstance(declared, list) else [declared]
    return "" if declared is None or set(given) <= {*types, "null"} else str(declared)


def _faq_parameters(tool: dict[str, Any], filters: list[str], faults: Faults) -> None:
    """A tool that searches the FAQ declares what the search takes: `query`, `top_k`, and columns to narrow by."""
    if not tool["parameters"]:
        return
    properties: dict[str, Any] = tool["parameters"].get("properties", {})

    def fault(message: str, got: str, allowed: str) -> None:
        faults.add(fault_at(tool["place"], "tool-parameters", message, got, allowed))

    if "query" not in properties or "query" not in tool["parameters"].get("required", []):
        fault(f"`{tool['name']}` has no required parameter `query`", listed(properties), "query: what to look for")
    for name, types in (("query", ("string",)), ("top_k", ("integer", "number")), ("filters", ("object",))):
        if wrong := _other_type(properties.get(name), *types):
            fault(f"the parameter `{name}` has another type", wrong, " | ".join(types))
    inner = properties.get("filters")
    narrowing = [name for name in properties if name not in ("query", "top_k", "filters")]
    narrowing += list(inner.get("properties", {})) if isinstance(inner, dict) else []
    for name in narrowing:
        if name not in filters:
            fault(f"the FAQ cannot be narrowed by `{name}`", name, f"query, top_k and {listed(filters)}")
