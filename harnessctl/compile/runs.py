"""Runs: how a tool's call is carried out, checked before any call is made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harnessctl.compile.code import CodeFinder, Function
from harnessctl.compile.scope import Scope, listed
from harnessctl.errors import Faults
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.specs import tools as specs

PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
ENVIRONMENT = re.compile(r"\$\{([^}]*)\}")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_HEADER = re.compile(r"^(authorization|proxy-authorization|cookie|x-api-key|api-key|.*(token|secret))$", re.I)


def check_run(
    document: Document,
    spec: specs.Tool,
    parameters: dict[str, Any] | None,
    scope: Scope,
    finder: CodeFinder,
    faults: Faults,
    *at: PathPart,
) -> None:
    """Check `run` and `simulate` of one tool; embeds their code."""
    if spec.run is None and spec.simulate is None and spec.final is None:
        faults.add(
            document.fault(
                "tool-run",
                f"the tool `{spec.name}` has nothing that carries it out",
                *at,
                allowed="run, simulate or final",
            )
        )
    for field, run in (("run", spec.run), ("simulate", spec.simulate)):
        if run is not None:
            _check_one(document, spec, run, parameters, scope, finder, faults, *at, field)
    if spec.simulate is not None and spec.simulate.builtin == "load_skill":
        message = "loading a skill is never simulated: it is the same in the sandbox"
        faults.add(document.fault("tool-run", message, *at, "simulate", "builtin", got="load_skill", allowed="run"))
    is_python = any(run is not None and run.python is not None for run in (spec.run, spec.simulate))
    if is_python and parameters is not None and "ctx" in parameters.get("properties", {}):
        message = "a function gets what it may use of the request as `ctx`: no parameter has this name"
        where = (*at, "parameters", "properties", "ctx")
        faults.add(document.fault("tool-parameters", message, *where, key=True, got="ctx", hint="rename the parameter"))
    if spec.run is not None and spec.final is not None and spec.run.builtin == "load_skill":
        faults.add(document.fault("tool-run", "load_skill cannot end the loop", *at, "final", key=True))
    if spec.retries and spec.effect == "write":
        faults.add(
            document.fault(
                "tool-retry-write",
                f"`{spec.name}` changes something and is tried again when it fails",
                *at,
                "retries",
                got=f"retries: {spec.retries}",
                hint="be sure that a second call does no harm",
                severity="warning",
            )
        )


def _check_one(
    document: Document,
    spec: specs.Tool,
    run: specs.Run,
    parameters: dict[str, Any] | None,
    scope: Scope,
    finder: CodeFinder,
    faults: Faults,
    *at: PathPart,
) -> None:
    given = [name for name in ("python", "http", "mcp", "builtin") if getattr(run, name) is not None]
    if len(given) != 1:
        faults.add(
            document.fault(
                "tool-run",
                "a call is carried out in exactly one way",
                *at,
                got=", ".join(given) or "none",
                allowed="one of python, http, mcp, builtin",
            )
        )
    if run.python is not None:
        function = finder.target(document, run.python, *at, "python")
        if function is not None and parameters is not None:
            _check_signature(document, function, parameters, faults, *at, "python")
    if run.http is not None:
        _check_http(document, run.http, parameters, faults, *at, "http")
    if run.mcp is not None and run.mcp.server not in scope.servers:
        faults.add(
            document.fault(
                "server-unknown",
                "there is no MCP server of this name",
                *at,
                "mcp",
                "server",
                got=run.mcp.server,
                allowed=listed(scope.servers),
                hint=scope.near(run.mcp.server, scope.servers),
            )
        )


def _check_signature(
    document: Document, function: Function, parameters: dict[str, Any], faults: Faults, *at: PathPart
) -> None:
    """The function takes each parameter as a keyword, and needs nothing but parameters that are required (and `ctx`)."""
    args = function.args
    names = [arg.arg for arg in (*args.args, *args.kwonlyargs)]
    positional = [*args.posonlyargs, *args.args]
    needed = [arg.arg for arg in positional[: len(positional) - len(args.defaults)]]
    needed += [arg.arg for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value is None]
    declared = [name for name in parameters.get("properties", {}) if name != "ctx"]
    required = parameters.get("required", [])
    if args.kwarg is None:
        for name in declared:
            if name not in names:
                faults.add(
                    document.fault(
                        "code-signature",
                        f"the function `{function.name}` does not take the parameter `{name}`",
                        *at,
                        got=f"{function.name}({', '.join(names)})",
                        allowed=", ".join(declared),
                    )
                )
    for name in needed:
        if name not in required and name != "ctx":
            faults.add(
                document.fault(
                    "code-signature",
                    f"the function `{function.name}` needs `{name}`, which no call must have",
                    *at,
                    got=f"required: {', '.join(required) or 'nothing'}",
                    hint=f"add `{name}` to required, or give it a default",
                )
            )


def _check_http(
    document: Document, http: specs.HttpRun, parameters: dict[str, Any] | None, faults: Faults, *at: PathPart
) -> None:
    known = parameters.get("properties", {}) if parameters is not None else None
    texts = [(("url",), http.url), *((("body", *where), text) for where, text in _texts(http.body, ()))]
    for where, text in texts:
        for match in ENVIRONMENT.finditer(text):
            faults.add(
                document.fault(
                    "http-environment",
                    "environment variables are allowed in headers only",
                    *at,
                    *where,
                    got=match[0],
                    allowed="headers",
                    hint="send it as a header",
                )
            )
        for name in PLACEHOLDER.findall(ENVIRONMENT.sub("", text)):
            if known is not None and name not in known:
                faults.add(
                    document.fault(
                        "http-placeholder",
                        "a placeholder is not a parameter of the tool",
                        *at,
                        *where,
                        got="{" + name + "}",
                        allowed=listed(known),
                    )
                )
    host = re.match(r"https?://([^/?#]*)", http.url)
    if host and ("{" in host[1] or not host[1]):
        faults.add(
            document.fault(
                "http-host",
                "the host of a URL is fixed: a model must not choose it",
                *at,
                "url",
                got=host[1],
                allowed="a host without placeholders",
            )
        )
    for name, value in http.headers.items():
        _check_environment(document, value, faults, *at, "headers", name)
        if _SECRET_HEADER.match(name) and not ENVIRONMENT.search(value):
            faults.add(secret_fault(document, name, *at, "headers", name))
    if http.pick is not None and http.pick != "" and not http.pick.startswith("/"):
        faults.add(
            document.fault(
                "http-pick", "pick is not a JSON Pointer", *at, "pick", got=http.pick, allowed="/part/of/answer"
            )
        )


def _check_environment(document: Document, value: str, faults: Faults, *at: PathPart) -> None:
    for name in ENVIRONMENT.findall(value):
        if not _ENVIRONMENT_NAME.fullmatch(name):
            faults.add(
                document.fault(
                    "http-environment",
                    "not the name of an environment variable",
                    *at,
                    got="${" + name + "}",
                    allowed="${NAME}",
                )
            )


def secret_fault(document: Document, name: str, *at: PathPart) -> Any:
    """The fault of a secret that is written into a manifest; its value is not shown."""
    return document.fault(
        "secret-literal",
        f"the value of `{name}` looks like a secret written out",
        *at,
        got="a literal value",
        allowed="${NAME}: taken from the environment",
        hint=f"write ${{{re.sub(r'[^A-Za-z0-9]+', '_', name).upper()}}}",
    )


def check_final(
    document: Document, spec: specs.Tool, parameters: dict[str, Any] | None, faults: Faults, *at: PathPart
) -> None:
    """The reply of a tool that ends the loop names parameters only."""
    if spec.final is None:
        return
    known = parameters.get("properties", {}) if parameters is not None else None
    for name in PLACEHOLDER.findall(spec.final.reply):
        if known is not None and name not in known:
            faults.add(
                document.fault(
                    "tool-final",
                    "the final reply names something that is not a parameter",
                    *at,
                    "final",
                    "reply",
                    got="{" + name + "}",
                    allowed=listed(known),
                )
            )
    if spec.final.reply and spec.final.route == "silent":
        faults.add(
            document.fault(
                "tool-final",
                "a silent ending has a reply that nobody hears",
                *at,
                "final",
                "route",
                got=spec.final.reply[:60],
                allowed="public | private",
                severity="warning",
            )
        )


def _texts(value: Any, at: tuple[PathPart, ...]) -> Iterator[tuple[tuple[PathPart, ...], str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*at, key))
    elif isinstance(value, list):
        for n, item in enumerate(value):
            yield from _texts(item, (*at, n))
