"""Endpoint: where an OpenAI-compatible model is, and what is sent to it besides the request.

What always holds: a secret comes from the environment, and is in no field of `Endpoint`, so that settings can be
recorded as they are.
"""

from __future__ import annotations

import os
import re
import urllib.request
from typing import Any

import msgspec
from yarl import URL

from harnessctl import __version__
from harnessctl.errors import UsageError

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_USUAL_KEY = "OPENAI_API_KEY"
_OURS = frozenset({"model", "messages", "tools", "stream"})


class Endpoint(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings of one model behind an endpoint.

    `base_url` defaults to OPENAI_BASE_URL, then to OpenAI's own. `key_env` names the variable that holds the key, which
    must be set; without it OPENAI_API_KEY is sent if it is set. Values of `headers` may hold `${NAME}` of the
    environment. `body` is merged into every request's body: `{"chat_template_kwargs": {...}}`,
    `{"logprobs": true}`, `{"return_token_ids": true}`; a null takes a key out (`{"stream_options": null}` for
    endpoints that refuse it). `send_reasoning` false keeps the model's past `reasoning_content` out of the messages, for
    endpoints that refuse it there. `connections` bounds the open connections; sizes are in bytes.
    """

    model: str
    base_url: str | None = None
    key_env: str | None = None
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    stream: bool = True
    send_reasoning: bool = True
    connections: int = 128
    connect_timeout_s: float = 10.0
    max_response_bytes: int = 16 << 20


class Target(msgspec.Struct, frozen=True):
    """An endpoint with the environment read: never written anywhere. `shown` is how errors name it."""

    url: URL
    shown: str
    headers: dict[str, str]
    secrets: tuple[str, ...]
    proxy: str | None


def resolve_endpoint(endpoint: Endpoint) -> Target:
    """Read the environment; UsageError when a setting is wrong or a named variable is not set."""
    base = _base_url(endpoint.base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")
    if clash := sorted(_OURS & endpoint.body.keys()):
        raise UsageError(f"body of the endpoint: {', '.join(clash)} cannot be set there")
    headers = {
        "Accept": "text/event-stream" if endpoint.stream else "application/json",
        "Accept-Encoding": "identity",  # answers are small, and what is not packed cannot burst
        "Content-Type": "application/json",
        "User-Agent": f"harnessctl/{__version__}",
    }
    secrets: list[str] = []
    key = os.environ.get(endpoint.key_env or _USUAL_KEY, "").strip()
    if not key and endpoint.key_env:
        raise UsageError(f"the environment variable {endpoint.key_env} (key_env of the endpoint) is not set")
    if key:
        secrets.append(key)
        headers["Authorization"] = f"Bearer {key}"
    usual = {name.lower(): name for name in headers}
    for name, value in endpoint.headers.items():
        headers[usual.get(name.lower(), name)] = _expand(name, value, secrets)
    for name, value in headers.items():
        if any(not char.isprintable() for char in name + value):
            raise UsageError(f"header {name!r} of the endpoint holds a control character")
    return Target(
        url=(base / "chat" / "completions").with_query(base.query),
        shown=str(base.with_query(None)),
        headers=headers,
        secrets=tuple(secret for secret in secrets if len(secret) >= 4),
        proxy=_proxy(base),
    )


def _base_url(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError as error:
        raise UsageError(f"base_url of the endpoint: {error}; got {text!r}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(
            f"base_url of the endpoint; got {text!r}; allowed http:// or https://", hint="http://127.0.0.1:30000/v1"
        )
    if url.user or url.password:
        raise UsageError(
            "base_url of the endpoint holds a user or a password", hint="secrets go into key_env or headers"
        )
    return url


def _expand(name: str, value: str, secrets: list[str]) -> str:
    """`value` with the environment put in; what was put in is added to `secrets`."""

    def variable(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise UsageError(f"the environment variable {match[1]} (header {name} of the endpoint) is not set")
        secrets.append(found)
        return found

    return _VARIABLE.sub(variable, value)


def _proxy(base: URL) -> str | None:
    """The proxy that the system names for `base`: found once, where the client would look at each request."""
    if urllib.request.proxy_bypass(base.host or ""):
        return None
    return urllib.request.getproxies().get(base.scheme)
