"""Tools: what the model may call, how a call is carried out, and the MCP servers that offer more."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl.manifests.specs.base import END, ApiVersion, Identifier, JsonSchema, Seconds, Spec, Version

Effect = Literal["none", "write"]
PythonTarget = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*" + END,
        max_length=200,
        description="module:function; the module is looked for beside the manifest, then from the project's root, then among installed packages",
    ),
]


class HttpRun(Spec, kw_only=True):
    """An HTTP request. `{name}` in url and body values stands for an argument; `${ENV}` is allowed in headers only."""

    url: Annotated[str, Meta(pattern=r"^https?://\S*" + END, description="http(s)://..., without spaces")]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: dict[str, str] = {}
    body: Annotated[
        Any, Meta(description="JSON sent as the body; a string that is exactly {name} takes the argument with its type")
    ] = None
    pick: Annotated[str | None, Meta(description="JSON Pointer of the part of the answer that is the result")] = None


class McpRun(Spec, kw_only=True):
    """A tool of one of the MCP servers named under mcpServers; `tool` is the server's own name for it."""

    server: str
    tool: str | None = None


class Run(Spec, kw_only=True):
    """How a call is carried out: exactly one of these."""

    python: PythonTarget | None = None
    http: HttpRun | None = None
    mcp: McpRun | None = None
    builtin: Literal["load_skill", "search_faq"] | None = None


class Final(Spec, kw_only=True):
    """Makes a tool that ends the loop. `reply` may name arguments as `{name}`; empty means that nothing is said."""

    reply: str = ""
    route: Literal["public", "private", "silent"] = "public"


class Tool(Spec, kw_only=True):
    """One tool. `description` is what the model reads; code, hooks and gold always use `name`."""

    name: Identifier
    description: Annotated[str, Meta(min_length=1, max_length=4096)]
    version: Version = "1.0.0"
    group: Annotated[str, Meta(description="retrieval, commerce, flow-control, marketing, or your own")] = "retrieval"
    tags: list[str] = []
    effect: Effect = "none"
    parameters: JsonSchema = {}
    result: Annotated[
        JsonSchema | None, Meta(description="schema of the result; a result that does not fit is an error")
    ] = None
    run: Run | None = None
    simulate: Annotated[Run | None, Meta(description="the sandboxed replica, used by the simulator instead of run")] = (
        None
    )
    timeout_s: Seconds | None = None
    retries: Annotated[int, Meta(ge=0, le=10)] = 0
    final: Final | None = None


class McpDefaults(Spec, kw_only=True):
    """What holds for tools discovered from a server."""

    group: str = "marketing"
    effect: Effect = "none"


class McpServer(Spec, kw_only=True):
    """A server in the `.mcp.json` form: `command` (stdio) or `url` (streamable HTTP)."""

    type: Literal["stdio", "http", "streamable-http"] | None = None
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    defaults: McpDefaults = msgspec.field(default_factory=McpDefaults)
    discover: Annotated[bool, Meta(description="take the server's tools/list in; it is locked in harness.lock")] = False


class Tools(Spec, kw_only=True, rename={"api_version": "apiVersion", "mcp_servers": "mcpServers"}):
    """A file of tools and MCP servers: `manifests/tools/<name>.yaml`."""

    api_version: ApiVersion
    kind: Literal["Tools"]
    tools: list[Tool] = []
    mcp_servers: dict[str, McpServer] = {}
