"""Servers: foreign maps of MCP servers as the project keeps them, without the secrets that were written into them.

What always holds: a value that is or looks like a secret is never written: `${NAME}` stands for it, and a note says so.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from harnessctl.importing.report import Entry

_READ = frozenset({"type", "command", "args", "env", "url", "headers", "serverUrl", "httpUrl", "transport", "disabled"})
_SECRET_NAME = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|KEY|PAT|CREDENTIALS?|AUTHORIZATION|COOKIE)$", re.IGNORECASE
)
_SECRET_VALUE = re.compile(
    r"^(sk-|ghp_|gho_|github_pat_|xox[abprs]-|glpat-|AKIA|eyJ[A-Za-z0-9_-]{10})|^Bearer ", re.IGNORECASE
)
_PLACEHOLDER = re.compile(r"\bYOUR_|_HERE\b|^<[^>]+>$|^\.\.\.$|^x{4,}$", re.IGNORECASE)
_ARGUMENT = re.compile(r"^(--?[\w-]+)=(.+)$")
_QUERY = re.compile(r"([?&])([\w.-]+)=([^&#]+)")
_REFERENCE = re.compile(r"\$\{[^}]*\}")


def server_spec(name: str, given: Any, entry: Entry, line: int) -> dict[str, Any] | None:
    """One entry of a server map as McpServer's fields, or None with a note of why it is not carried over."""

    def skip(reason: str) -> None:
        entry.note("not carried over", line, f"the server `{name}`: {reason}")

    if not isinstance(given, dict):
        skip("it is no object")
        return None
    command, url = given.get("command"), given.get("url") or given.get("serverUrl") or given.get("httpUrl")
    kind = str(given.get("type") or given.get("transport") or "").lower().replace("_", "-")
    if kind == "sse":
        skip("it speaks SSE; stdio and streamable HTTP are spoken here")
        return None
    if given.get("disabled") is True:
        skip("it is switched off there (`disabled`)")
        return None
    if isinstance(command, list) and command:
        command, given = command[0], {**given, "args": [*command[1:], *(given.get("args") or [])]}
    if isinstance(command, str) and command.strip() and not url:
        out: dict[str, Any] = {"command": command}
        if args := [str(arg) for arg in given.get("args") or []]:
            out["args"] = _arguments(name, args, entry, line)
        if env := _values(name, given.get("env"), entry, line):
            out["env"] = env
    elif isinstance(url, str) and url.startswith(("http://", "https://")) and not command:
        out = {"type": "http", "url": _without_query_secrets(name, url, entry, line)}
        if headers := _values(name, given.get("headers"), entry, line):
            out["headers"] = headers
    else:
        skip("it has both a command and a url" if command and url else "it has no command and no http url")
        return None
    return out


def unread_fields(servers: dict[str, Any], entry: Entry) -> None:
    """A note on the fields of a server map that nothing here reads."""
    count = Counter(key for given in servers.values() if isinstance(given, dict) for key in given if key not in _READ)
    if count:
        entry.note(
            "not carried over", 0, f"fields of servers: {', '.join(f'{key} ({n})' for key, n in sorted(count.items()))}"
        )


def unknown_server(name: str, entry: Entry) -> dict[str, Any]:
    """The entry of a server of which a capture does not say how it is reached: its command is left to the environment."""
    variable = f"{_variable(name)}_COMMAND"
    entry.note(
        "warning",
        0,
        f"the capture does not say how the server `{name}` is started: write its command or url under mcpServers, or set "
        f"{variable}; until then a call of its tools is an error",
    )
    return {"command": f"${{{variable}}}"}


def _values(name: str, values: Any, entry: Entry, line: int) -> dict[str, str]:
    """env or headers; what is or looks like a secret, and what was left to be filled in, is taken from the environment."""
    out: dict[str, str] = {}
    for key, value in values.items() if isinstance(values, dict) else ():
        text = "" if value is None else str(value)
        if _REFERENCE.search(text) or not text:
            out[key] = text
        elif _is_secret(key, text):
            out[key] = f"${{{_variable(key)}}}"
            entry.note(
                "changed",
                line,
                f"the server `{name}`: the value of {key} is not written; it is taken from {_variable(key)}",
            )
        else:
            out[key] = text
    return out


def _arguments(name: str, args: list[str], entry: Entry, line: int) -> list[str]:
    out: list[str] = []
    for index, arg in enumerate(args):
        option = args[index - 1] if index and args[index - 1].startswith("-") and not arg.startswith("-") else ""
        match = _ARGUMENT.match(arg)
        key, value = (match[1], match[2]) if match else (option, arg)
        if _REFERENCE.search(value) or not _is_secret(key.lstrip("-"), value):
            out.append(arg)
            continue
        variable = _variable(key.lstrip("-")) if key else f"{_variable(name)}_ARGUMENT"
        out.append(f"{match[1]}=${{{variable}}}" if match else f"${{{variable}}}")
        shown = key or "an argument"
        entry.note(
            "changed", line, f"the server `{name}`: the value of {shown} is not written; it is taken from {variable}"
        )
    return out


def _without_query_secrets(name: str, url: str, entry: Entry, line: int) -> str:
    def hidden(match: re.Match[str]) -> str:
        if _REFERENCE.search(match[3]) or not _is_secret(match[2], match[3]):
            return match[0]
        variable = _variable(match[2])
        entry.note(
            "changed", line, f"the server `{name}`: the value of {match[2]} is not written; it is taken from {variable}"
        )
        return f"{match[1]}{match[2]}=${{{variable}}}"

    return _QUERY.sub(hidden, url)


def _is_secret(key: str, value: str) -> bool:
    named = bool(key) and _SECRET_NAME.search(key.replace("-", "_")) is not None
    return named or bool(_SECRET_VALUE.search(value)) or bool(_PLACEHOLDER.search(value))


def _variable(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper()
    return name if name and not name[0].isdigit() else f"_{name}"
