"""Discover: the tools of MCP servers with `discover: true`, from harness.lock, or asked for once and locked there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import msgspec.structs

from harnessctl.bundle import state
from harnessctl.bundle.text import Text
from harnessctl.compile.references import text_of
from harnessctl.compile.scope import Scope
from harnessctl.compile.unit import Unit, fault_at
from harnessctl.errors import Faults, HarnessctlError, StorageError
from harnessctl.manifests.passage import Passage
from harnessctl.manifests.specs.tools import McpServer
from harnessctl.storage import canonical_json, digest


def _kept(tool: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a tool that a server lists; what no lock and no bundle could hold is `unusable`, with the cause."""
    kept = {key: tool[key] for key in ("name", "description", "inputSchema") if tool.get(key) is not None}
    name = str(kept.get("name"))
    try:
        canonical_json({**kept, "name": name})
    except StorageError as error:
        return {"name": ascii(name)[1:-1], "unusable": error.message}
    return {**kept, "name": name}


#: Asks a server for its tools/list: (name, its entry of mcpServers) to [{name, description, inputSchema}].
Discover = Callable[[str, dict[str, Any]], list[dict[str, Any]]]


class Discovered:
    """What each server offers. `locked` is the section of harness.lock as it will be."""

    def __init__(self, lock: dict[str, Any] | None, discover: Discover | None, *, locked: bool) -> None:
        self._old: dict[str, Any] = (lock or {}).get("discovered", {})
        self._discover = discover if not locked else None
        self.locked: dict[str, dict[str, Any]] = {}

    def tools(self, unit: Unit, faults: Faults) -> list[tuple[state.Tool, list[Any]]]:
        """The tools of all discovered servers of a Tools manifest, each with the place of its server."""
        out: list[tuple[state.Tool, list[Any]]] = []
        declared = {tuple(tool["mcp"]) for tool in unit.outline.get("tools", []) if tool["mcp"]}
        for name, server in unit.outline.get("servers", {}).items():
            if server["spec"].get("discover") is True:
                found = self._of(name, server, faults)
                out.extend((tool, server["place"]) for tool in found if (name, tool.name) not in declared)
        return out

    def _of(self, name: str, server: dict[str, Any], faults: Faults) -> list[state.Tool]:
        spec, place = server["spec"], server["place"]
        try:
            defaults = msgspec.convert(spec, McpServer).defaults
        except msgspec.ValidationError:
            return []  # the entry's own faults are reported where tools are bound
        key = digest({k: v for k, v in spec.items() if k not in ("defaults", "discover")})
        known: dict[str, Any] | None = self.locked.get(name) or self._old.get(name)
        if known is None or known.get("spec") != key:
            if name in self.locked:
                faults.add(
                    fault_at(
                        place,
                        "server-duplicate",
                        f"two MCP servers are called `{name}`",
                        allowed="one entry of each name",
                    )
                )
                return []
            listed = self._ask(name, server, known is not None, faults)
            if listed is None:
                return []
            known = {"spec": key, "tools": sorted(map(_kept, listed), key=lambda tool: tool["name"])}
        from harnessctl.compile.servers import discovered_tool

        self.locked[name] = known
        out = []
        entries: list[dict[str, Any]] = known["tools"]
        for entry in entries:
            tool = discovered_tool(name, defaults, entry)
            if isinstance(tool, str):
                faults.add(
                    fault_at(
                        place,
                        "server-tool",
                        f"a tool of the MCP server `{name}` cannot be used: {tool}",
                        got=str(entry.get("name")),
                        severity="warning",
                    )
                )
            else:
                out.append(tool)
        return out

    def _ask(self, name: str, server: dict[str, Any], is_changed: bool, faults: Faults) -> list[dict[str, Any]] | None:
        place = server["place"]
        if self._discover is None:
            why = "its entry changed since" if is_changed else "it was never asked"
            faults.add(
                fault_at(
                    place,
                    "server-not-locked",
                    f"the tools of the MCP server `{name}` are not locked: {why}",
                    allowed="a locked list in harness.lock",
                    hint="run `harnessctl compile` where the server can be reached, and commit harness.lock",
                )
            )
            return None
        try:
            return self._discover(name, server["spec"])
        except Exception as error:
            # The function comes from above and may fail in any way; the fault names the server and the cause.
            cause = error.message if isinstance(error, HarnessctlError) else f"{type(error).__name__}: {error}"
            faults.add(
                fault_at(
                    place,
                    "server-discover",
                    f"the MCP server `{name}` did not list its tools",
                    got=cause[:200],
                    hint="check that it starts: its command, its environment, its address",
                )
            )
            return None


def outline_of(tool: state.Tool, place: list[Any]) -> dict[str, Any]:
    """The outline of a discovered tool, as Tools manifests give them."""
    return {
        "name": tool.name,
        "group": tool.group,
        "tags": tool.tags,
        "effect": tool.effect,
        "version": "0",
        "parameters": tool.parameters,
        "builtin": "",
        "mcp": [tool.run["mcp"]["server"], tool.run["mcp"]["tool"]] if tool.run else None,
        "place": place,
    }


def with_references(tool: state.Tool, scope: Scope) -> state.Tool:
    """The tool with references in its texts where a code span is a known name.

    Its other words are the server's: nobody here can put them into code spans, so that bare names are no fault.
    """

    def linked(text: Text) -> Text:
        written = "".join(part for part in text if isinstance(part, str))
        return text_of(Passage("", written, lambda _: (0, 0)), scope, Faults())

    docs = {place: linked(text) for place, text in tool.docs.items()}
    return msgspec.structs.replace(tool, description=linked(tool.description), docs=docs)


def plain(tool: state.Tool) -> dict[str, Any]:
    """The tool as plain JSON."""
    out: dict[str, Any] = msgspec.to_builtins(tool)
    return out
