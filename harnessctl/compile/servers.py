"""MCP servers: the `.mcp.json` form, checked; and the tools that a server was found to offer."""

from __future__ import annotations

import re
from typing import Any

from harnessctl.bundle import state
from harnessctl.compile import json_schemas
from harnessctl.compile.runs import ENVIRONMENT, secret_fault
from harnessctl.errors import Faults
from harnessctl.manifests.load import Document
from harnessctl.manifests.specs.tools import McpDefaults, McpServer

_SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|KEY|CREDENTIALS?|AUTHORIZATION|COOKIE)$", re.I)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
MAX_DESCRIPTION = 4096


def check_server(document: Document, name: str, server: McpServer, faults: Faults) -> None:
    """Check one entry of mcpServers."""
    at = ("mcpServers", name)
    given = [field for field in ("command", "url") if getattr(server, field) is not None]
    if len(given) != 1:
        faults.add(
            document.fault(
                "server-form",
                f"the MCP server `{name}` is reached in exactly one way",
                *at,
                key=True,
                got=", ".join(given) or "neither",
                allowed="command (stdio) or url (streamable HTTP)",
            )
        )
    elif server.type is not None and (server.type == "stdio") != (given[0] == "command"):
        faults.add(
            document.fault(
                "server-form",
                "the type of the server does not go with how it is reached",
                *at,
                "type",
                got=f"{server.type} with {given[0]}",
                allowed="stdio with command; http with url",
            )
        )
    if server.command is not None and server.headers:
        faults.add(document.fault("server-form", "headers go with url only", *at, "headers", key=True))
    if server.url is not None and (server.args or server.env):
        field = "args" if server.args else "env"
        faults.add(document.fault("server-form", f"{field} goes with command only", *at, field, key=True))
    for field, values in (("env", server.env), ("headers", server.headers)):
        for key, value in values.items():
            if value and _SECRET_NAME.search(key.replace("-", "_")) and not ENVIRONMENT.search(value):
                faults.add(secret_fault(document, key, *at, field, key))


def discovered_tool(server: str, defaults: McpDefaults, found: dict[str, Any]) -> state.Tool | str:
    """The tool that a server lists as `found` ({name, description, inputSchema}), or why it cannot be used.

    `defaults` are those of the server's entry.
    """
    if "unusable" in found:
        return str(found["unusable"])
    name = found.get("name")
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        return f"its name is not one that a model can call: {name!r}"
    schema = found.get("inputSchema") or {}
    faults = Faults()
    document = Document("", {"schema": schema}, None, "", 0)
    rewritten = json_schemas.rewrite(document, faults, "schema")
    if rewritten is None or faults.items:
        return f"its parameters are not a JSON Schema: {faults.items[0].got if faults.items else schema}"
    if rewritten.schema.get("type", "object") != "object":
        return "its parameters are not an object"
    return state.Tool(
        name=name,
        description=[str(found.get("description") or name)[:MAX_DESCRIPTION]],
        group=defaults.group,
        effect=defaults.effect,
        parameters={"type": "object", **rewritten.schema},
        docs={place: [str(document.get(*where))] for place, where in rewritten.docs.items()},
        run={"mcp": {"server": server, "tool": name}},
    )
