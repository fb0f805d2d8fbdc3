"""MCP tools: a call to a tool of an MCP server, and the list of what a server offers.

Needs the extra `mcp`; without it every tool of a server is an error that says how to install it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from harnessctl.bundle.state import Tool
from harnessctl.errors import ToolError
from harnessctl.manifests.specs.tools import McpServer
from harnessctl.runtime.protocols import ToolContext
from harnessctl.runtime.tools.environment import Environment
from harnessctl.runtime.tools.mcp_server import McpConnection
from harnessctl.runtime.tools.outcome import Failure, ResultForm


class McpCall:
    """One tool of a server; `name` is the server's own name for it."""

    def __init__(self, tool: Tool, name: str, connection: McpConnection, form: ResultForm) -> None:
        self._name = name
        self._repeatable = tool.effect == "none"
        self._connection = connection
        self._form = form

    async def begin(self, args: dict[str, Any], ctx: ToolContext) -> Any:
        """What the server answers. Text that is JSON is read where only its content fits the tool's result schema."""
        del ctx
        value = await self._connection.call(self._name, args, repeatable=self._repeatable)
        if isinstance(value, str) and self._form.has_schema and not self._form.fits(value):
            try:
                content = orjson.loads(value)
            except orjson.JSONDecodeError:
                return value
            return content
        return value


async def discover(name: str, spec: McpServer | Mapping[str, Any]) -> list[dict[str, Any]]:
    """tools/list of a server, sorted by name: [{name, description, inputSchema, ...}], without icons and metadata.

    The server is started for it and ended again. ToolError says why it could not be asked.
    """
    server: Mapping[str, Any] = msgspec.to_builtins(spec) if isinstance(spec, McpServer) else spec
    environment = Environment(os.environ)
    fault = server_fault(server, environment)
    if fault:
        raise ToolError(f"MCP server `{name}`: {fault[0]}", hint=fault[1])
    notes: list[str] = []
    connection = McpConnection(name, server, environment, note=notes.append)
    try:
        return await connection.start()
    except Failure as error:
        raise ToolError(notes[-1] if notes else f"MCP server `{name}`: {error.message}") from None
    finally:
        await connection.aclose()


def server_fault(spec: Mapping[str, Any], environment: Environment) -> tuple[str, str] | None:
    """(what, hint) that makes a server unusable before it is started: the package, its form, the environment."""
    try:
        import mcp  # noqa: F401
    except ImportError:
        return "the package `mcp` is not installed", "pip install 'harnessctl[mcp]'"
    if (spec.get("command") is None) == (spec.get("url") is None):
        return "a server has either `command` or `url`", ""
    used = [spec.get(key) for key in ("command", "args", "env", "url", "headers")]
    if missing := environment.missing(used):
        return f"not set in the environment: {', '.join(missing)}", "set it, or write ${NAME:-default}"
    if header := environment.broken_header(spec.get("headers", {})):
        return f"the header `{header}` has a line break in its value", ""
    return None
