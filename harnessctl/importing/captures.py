"""Captures: the shapes in which people keep what an MCP server lists, read into one.

| shape                                          | where it is from |
|------------------------------------------------|------------------|
| `[tool, ...]`                                  | a list on its own |
| `{"tools": [...]}`                             | a tools/list result |
| `{"result": {"tools": [...]}}`                 | a JSON-RPC answer |
| `{"server_info": {name}, "tools": [...]}`      | a snapshot of a stdio server |
| `{"server": name, "url": ..., "tools": [...]}` | a snapshot of an HTTP server |
| `{"initialize_result": ..., "parameters": {command, args}, "tools": [...]}` | an interviewer's report |
| `{"name", "inputSchema"}`                      | one tool |
| `{"mcpServers": {...}}`, `{"servers": {...}}`  | a server map |
"""

from __future__ import annotations

from typing import Any

import msgspec

Path = tuple[str | int, ...]


class Capture(msgspec.Struct, kw_only=True):
    """What one document holds. `at` is the path of the list of tools in it (empty for one tool on its own)."""

    tools: list[Any] = []
    at: Path = ()
    single: bool = False
    server: str = ""
    reached: dict[str, Any] | None = None
    servers: dict[str, Any] = {}
    servers_at: str = ""


def read_capture(value: Any) -> Capture | str:
    """The capture in a document, or why it is none."""
    if isinstance(value, list):
        if value and all(isinstance(item, dict) and "name" in item for item in value):
            return Capture(tools=value)
        return "it is a list, and not one of tools with names"
    if not isinstance(value, dict):
        return "it is neither an object nor a list"
    for key in ("mcpServers", "servers"):
        if isinstance(value.get(key), dict):
            return Capture(servers=value[key], servers_at=key)
    if isinstance(value.get("result"), dict) and "tools" in value["result"]:
        found = read_capture(value["result"])
        return found if isinstance(found, str) else msgspec.structs.replace(found, at=("result", *found.at))
    if "inputSchema" in value and isinstance(value.get("name"), str):
        return Capture(tools=[value], single=True)
    tools = value.get("tools")
    if isinstance(tools, dict):
        what = (
            "examples of calls" if any("example_input" in x for x in tools.values() if isinstance(x, dict)) else "a map"
        )
        return f"its `tools` are {what} by name, without an inputSchema: it is no tools/list"
    if not isinstance(tools, list):
        if "error" in value:
            return f"it is an error of the server, not a list of tools: {str(value['error'])[:80]}"
        return f"it lists no tools: there is no `tools`, `result` or `mcpServers` in it; its keys: {', '.join(list(value)[:6])}"
    if not tools:
        return "its list of tools is empty"
    return Capture(tools=tools, at=("tools",), server=_server(value), reached=_reached(value))


def _server(value: dict[str, Any]) -> str:
    """The server's name as the capture gives it."""
    initialize = value.get("initialize_result") or value.get("initializeResult")
    for holder in (value.get("server_info"), value.get("serverInfo"), initialize):
        if isinstance(holder, dict):
            info = holder.get("serverInfo", holder)
            if isinstance(info, dict) and isinstance(info.get("name"), str):
                return info["name"]
    return value["server"] if isinstance(value.get("server"), str) else ""


def _reached(value: dict[str, Any]) -> dict[str, Any] | None:
    """How the server was reached, where the capture says it."""
    parameters = value.get("parameters")
    for holder in (parameters, value, value.get("server")):
        if isinstance(holder, dict) and (isinstance(holder.get("command"), str) or isinstance(holder.get("url"), str)):
            return {
                key: holder[key] for key in ("command", "args", "env", "url", "headers", "transport") if holder.get(key)
            }
    return None
