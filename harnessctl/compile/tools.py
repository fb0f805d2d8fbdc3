"""Tools: the tools and MCP servers of one manifest to the state's Tool and servers."""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.bundle import state
from harnessctl.compile import json_schemas, load_skill
from harnessctl.compile.code import CodeFinder
from harnessctl.compile.references import text_of
from harnessctl.compile.runs import check_final, check_run
from harnessctl.compile.scope import Scope
from harnessctl.compile.servers import check_server
from harnessctl.compile.sources import header
from harnessctl.compile.unit import Bound
from harnessctl.errors import Faults
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.locate import SourceFile
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs import tools as specs

_SEARCH_FAQ_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "minLength": 1}},
    "required": ["query"],
    "additionalProperties": False,
}
_BUILTIN_PARAMETERS = {load_skill.LOAD_SKILL: load_skill.PARAMETERS, "search_faq": _SEARCH_FAQ_PARAMETERS}


def read(file: SourceFile, data: bytes, faults: Faults) -> Document | None:
    """The manifest in the bytes, when it is one of tools."""
    return header(file, data, "Tools", specs.Tools, ("tools", "mcpServers"), faults)


def outline(file: SourceFile, parsed: Document) -> dict[str, Any]:
    """What hooks, examples and texts must know of each tool, and the servers as written."""
    tools = []
    for n, tool in enumerate(_list(parsed.get("tools"))):
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            tools.append(_tool_outline(file, parsed, n, tool))
    servers = parsed.get("mcpServers")
    return {
        "tools": tools,
        "servers": {
            name: {"spec": spec, "place": [file.path, *parsed.place("mcpServers", name, key=True)]}
            for name, spec in (servers.items() if isinstance(servers, dict) else ())
            if isinstance(spec, dict)
        },
    }


def _tool_outline(file: SourceFile, parsed: Document, n: int, tool: dict[str, Any]) -> dict[str, Any]:
    parameters = tool.get("parameters")
    run, replica = (part if isinstance(part, dict) else {} for part in (tool.get("run"), tool.get("simulate")))
    server = run.get("mcp")
    return {
        "name": tool["name"],
        "group": str(tool.get("group", "retrieval")),
        "tags": [tag for tag in _list(tool.get("tags")) if isinstance(tag, str)],
        "effect": tool.get("effect", "none"),
        "version": str(tool.get("version", "1.0.0")),
        "parameters": parameters if _is_usable(parameters) else {},
        "builtin": run.get("builtin") or "",
        "searches": "search_faq" in (run.get("builtin"), replica.get("builtin")),
        "mcp": [server.get("server"), server.get("tool") or tool["name"]] if isinstance(server, dict) else None,
        "place": [file.path, *parsed.place("tools", n, "name")],
    }


def _is_usable(parameters: Any) -> bool:
    """Whether others may look at the properties; what is wrong with them is reported where tools are bound."""
    return isinstance(parameters, dict) and isinstance(parameters.get("properties", {}), dict)


def bind(file: SourceFile, parsed: Document, scope: Scope, faults: Faults) -> Bound:
    """The state's tools under `tools`, its servers under `servers`."""
    bound = Bound(state={"tools": [], "servers": {}})
    finder = CodeFinder(scope.root, file.path, bound, faults)
    for n, _ in enumerate(_list(parsed.get("tools"))):
        spec = convert(parsed, "Tools", specs.Tool, faults, "tools", n, name="Tool")
        if spec is not None:
            tool = _tool(parsed, spec, scope, finder, faults, "tools", n)
            bound.state["tools"].append(msgspec.to_builtins(tool))
            bound.places[f"tools/{tool.name}"] = [file.path, *parsed.place("tools", n, "name")]
    for name in parsed.get("mcpServers") or {}:
        server = convert(parsed, "Tools", specs.McpServer, faults, "mcpServers", name, name="McpServer")
        if server is not None:
            check_server(parsed, name, server, faults)
            bound.state["servers"][name] = msgspec.to_builtins(server)
            bound.places[f"servers/{name}"] = [file.path, *parsed.place("mcpServers", name, key=True)]
    return bound


def _tool(
    document: Document, spec: specs.Tool, scope: Scope, finder: CodeFinder, faults: Faults, *at: PathPart
) -> state.Tool:
    found = _parameters(document, spec, scope, faults, *at)
    # Without usable parameters nothing can be said of how they are used; that they are not usable was said.
    parameters, docs = found if found is not None else ({}, {})
    result = json_schemas.rewrite(document, faults, *at, "result") if spec.result is not None else None
    known = parameters if found is not None else None
    check_run(document, spec, known, scope, finder, faults, *at)
    check_final(document, spec, known, faults, *at)
    return state.Tool(
        name=spec.name,
        description=text_of(document.passage(*at, "description"), scope, faults),
        group=spec.group,
        tags=spec.tags,
        effect=spec.effect,
        parameters=parameters,
        docs=docs,
        result=result.schema if result else None,
        run=_plain_run(spec, spec.run),
        simulate=_plain_run(spec, spec.simulate),
        timeout_s=spec.timeout_s,
        retries=spec.retries,
        final=msgspec.to_builtins(spec.final) if spec.final is not None else None,
    )


def _parameters(
    document: Document, spec: specs.Tool, scope: Scope, faults: Faults, *at: PathPart
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The parameters without annotations, and the text of each description by JSON Pointer; None after a fault."""
    if not spec.parameters:
        builtin = spec.run.builtin if spec.run is not None else None
        return dict(_BUILTIN_PARAMETERS.get(builtin or "", {"type": "object", "properties": {}})), {}
    rewritten = json_schemas.rewrite(document, faults, *at, "parameters")
    if rewritten is None:
        return None
    schema = rewritten.schema
    if schema.get("type", "object") != "object":
        faults.add(
            document.fault(
                "tool-parameters",
                "the parameters of a tool are an object",
                *at,
                "parameters",
                "type",
                got=str(schema["type"]),
                allowed="type: object with properties",
            )
        )
        return None
    properties = schema.get("properties", {})
    before = len(faults.items)
    for n, name in enumerate(_list(schema.get("required"))):
        if name not in properties and isinstance(properties, dict):
            faults.add(
                document.fault(
                    "tool-parameters",
                    "`required` names a parameter that is not declared",
                    *at,
                    "parameters",
                    "required",
                    n,
                    got=str(name),
                    allowed=", ".join(properties),
                    hint=scope.near(str(name), properties),
                )
            )
    if len(faults.items) > before:
        return None
    docs = {place: text_of(document.passage(*where), scope, faults) for place, where in rewritten.docs.items()}
    return {"type": "object", **schema}, docs


def _plain_run(spec: specs.Tool, run: specs.Run | None) -> dict[str, Any] | None:
    if run is None:
        return None
    plain: dict[str, Any] = msgspec.to_builtins(run)
    if run.mcp is not None:
        plain["mcp"] = {"server": run.mcp.server, "tool": run.mcp.tool or spec.name}
    return plain


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
