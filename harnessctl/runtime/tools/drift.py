"""Drift: how a server's tools differ now from what the bundle was compiled with.

Descriptions are compared only where the bundle holds the server's own list (`tools` beside the server's settings),
because augmentation rewrites the ones that a model sees; parameters only of tools that were taken from the server, since
a tool that is declared by hand may offer fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.bundle.state import Tool

_NOTES = frozenset({"title", "description", "examples", "$schema", "$comment", "$id"})
#: Keywords whose value maps names, which may be any word, to schemas.
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
#: Keywords whose value is data, not a schema.
_DATA = frozenset({"enum", "const", "default", "required"})


def drift(
    server: str, spec: Mapping[str, Any], used: Mapping[str, Tool], present: Sequence[Mapping[str, Any]]
) -> list[str]:
    """A sentence for each difference, for a person to read.

    `used` are the bundle's tools by the server's name for them, `present` is tools/list now, as `discover` gives it.
    """
    now = {tool["name"]: tool for tool in present}
    locked: dict[str, Mapping[str, Any]] = {tool["name"]: tool for tool in spec.get("tools", [])}
    found = [f"tool `{name}` is gone" for name in sorted(used.keys() - now.keys())]
    for name in sorted((locked.keys() | used.keys()) & now.keys()):
        if "unusable" in locked.get(name, {}):
            continue  # nothing of it was kept, and nobody calls it
        if name in locked and locked[name].get("description") != now[name].get("description"):
            found.append(f"the description of `{name}` changed")
        if name in locked or spec.get("discover"):
            before = locked[name].get("inputSchema", {}) if name in locked else used[name].parameters
            found += [f"`{name}`: {change}" for change in _changes(bare(before), bare(now[name]["inputSchema"]))]
    if spec.get("discover"):
        found += [f"tool `{name}` is new" for name in sorted(now.keys() - used.keys() - locked.keys())]
    return [f"MCP server `{server}` differs from what was compiled: {change}" for change in found]


def bare(schema: Any) -> Any:
    """`schema` without what does not decide whether a value fits it; older drafts' `definitions` are `$defs`."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        key = "$defs" if key == "definitions" else key
        if key == "$ref" and isinstance(value, str):
            out[key] = value.replace("#/definitions/", "#/$defs/")
        elif key in _MAPS and isinstance(value, dict):
            out[key] = {name: bare(inner) for name, inner in value.items()}
        elif key not in _NOTES:
            out[key] = value if key in _DATA else bare(value)
    return out


def _changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    if before == now:
        return []
    old, new = before.get("properties", {}), now.get("properties", {})
    found = [f"parameter `{name}` is gone" for name in old if name not in new]
    found += [f"parameter `{name}` is new" for name in new if name not in old]
    found += [f"parameter `{name}` changed" for name in old if name in new and old[name] != new[name]]
    needed = {*now.get("required", [])} ^ {*before.get("required", [])}
    found += [
        f"parameter `{name}` is {'now' if name in now.get('required', []) else 'no longer'} required"
        for name in sorted(needed)
    ]
    return found or ["its schema changed"]
