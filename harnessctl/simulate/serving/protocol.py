"""Protocol: served tools behind the low-level server of the `mcp` package (extra `mcp`).

A failed call is a result with `isError`, so that the model on the other side reads why; only a tool that is not offered
is an error of the protocol.
"""

from __future__ import annotations

from typing import Any

import orjson

from harnessctl import __version__
from harnessctl.errors import UsageError
from harnessctl.runtime.tools.outcome import ToolOutcome
from harnessctl.simulate.serving.tools import ServedTools

#: The header by which an HTTP client picks its sandbox, where the protocol has no sessions of its own (2026-07-28).
SESSION_HEADER = "harnessctl-session"
_MCP_SESSION_HEADER = "mcp-session-id"
#: A longer name of a session is cut.
_MAX_SESSION_CHARS = 200


def need_mcp() -> None:
    """UsageError, with how to install it, where the `mcp` package is not there."""
    try:
        import mcp.server  # noqa: F401
    except ImportError as error:
        raise UsageError("serving tools needs the package `mcp`", hint="pip install 'harnessctl[mcp]'") from error


def mcp_server(tools: ServedTools, name: str) -> Any:
    """A `mcp.server.lowlevel.Server` that offers `tools`; the caller opens and closes them."""
    import mcp_types as types
    from mcp import MCPError
    from mcp.server.lowlevel import Server
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    listed = [
        types.Tool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.parameters,
            annotations=types.ToolAnnotations(read_only_hint=not tool.writes),
        )
        for tool in tools.offered()
    ]
    schemas = {tool.name: tool.input_schema for tool in listed}

    async def list_tools(ctx: Any, params: Any) -> Any:
        del ctx, params
        return types.ListToolsResult(tools=listed)

    async def call_tool(ctx: Any, params: Any) -> Any:
        if not tools.knows(params.name):
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:100]!r}")
        outcome = await tools.call(_session(ctx), params.name, dict(params.arguments or {}))
        if outcome.status != "ok":
            text = types.TextContent(type="text", text=outcome.error or outcome.status)
            return types.CallToolResult(content=[text], is_error=True)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=_text(outcome))],
            structured_content=_structured(outcome, any_json=ctx.protocol_version in MODERN_PROTOCOL_VERSIONS),
        )

    return Server(
        f"harnessctl-{name}",
        version=__version__,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
    )


def _session(ctx: Any) -> str:
    """Which sandbox a call runs in: the session of the connection, or the one that an HTTP client names."""
    headers = getattr(ctx.request, "headers", None) or {}
    return str(headers.get(_MCP_SESSION_HEADER) or headers.get(SESSION_HEADER) or "")[:_MAX_SESSION_CHARS]


def _text(outcome: ToolOutcome) -> str:
    return outcome.result if isinstance(outcome.result, str) else orjson.dumps(outcome.result).decode()


def _structured(outcome: ToolOutcome, *, any_json: bool) -> Any:
    """The result as JSON beside its text; before 2026-07-28 the protocol takes only objects."""
    value = outcome.result
    return value if isinstance(value, dict) or (any_json and not isinstance(value, str)) else None
