"""HTTP tools: one request per call, through a session that all tools of a harness share.

What always holds: arguments cannot change the host or climb in the path; a redirect is followed only within the
origin; at most MAX_ANSWER_BYTES of an answer are read; no cookie is kept from one call to the next; neither a header
nor a query appears in an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import orjson
from multidict import CIMultiDict
from yarl import URL

from harnessctl.bundle.state import Tool
from harnessctl.errors import ToolError
from harnessctl.runtime.protocols import ToolContext
from harnessctl.runtime.tools.environment import Environment
from harnessctl.runtime.tools.outcome import Failure, ResultForm, shorten

MAX_ANSWER_BYTES = 4 * 1024 * 1024
MAX_REDIRECTS = 5
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
#: Statuses that another try may mend.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
#: Of a URL as written: what is not encoded.
_KEPT = "%/:?#[]@!$&'()*+,;=~{}"
#: What stands at a JSON Pointer to nothing.
MISSING = object()


class HttpClient:
    """The aiohttp session of a tool set, made on first use."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    @property
    def session(self) -> aiohttp.ClientSession:
        """The session; it keeps connections and no cookies, and leaves time limits to the caller."""
        if self._closed:
            raise Failure("error", "the tools are closed", retryable=False, sent=False)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=None)
            )
        return self._session

    async def aclose(self) -> None:
        """Close every connection for good."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None


class HttpCall:
    """One http tool. ToolError when the request could never be made."""

    def __init__(self, tool: Tool, spec: Mapping[str, Any], client: HttpClient, form: ResultForm) -> None:
        self._headers: dict[str, str] = spec.get("headers", {})
        self._method: str = spec.get("method", "GET")
        self._url: str = spec["url"]
        self._body = spec.get("body")
        self._pick: str | None = spec.get("pick")
        self._client = client
        self._form = form
        base, _, self._query = self._url.partition("?")
        parts = urlsplit(base)
        self._origin, self._path = f"{parts.scheme}://{parts.netloc}", quote(parts.path, safe=_KEPT)
        self._query = quote(self._query, safe=_KEPT)
        if not parts.hostname or _PLACEHOLDER.search(self._origin):
            raise ToolError(f"tool `{tool.name}`: the host in {self._url!r} must be fixed")
        known = {*tool.parameters.get("properties", {})}
        unknown = {*_PLACEHOLDER.findall(self._url)} - known
        if unknown:
            raise ToolError(f"tool `{tool.name}`: the URL names {sorted(unknown)}, which are no parameters")
        self._known = known

    async def begin(self, args: dict[str, Any], ctx: ToolContext) -> Any:
        """The picked part of the answer. Failure otherwise."""
        del ctx
        args = {name: value for name, value in args.items() if value is not None}
        url = self._target(args)
        body = None if self._body is None else self._fill(self._body, args)
        headers = CIMultiDict({"Accept": "application/json, text/plain;q=0.8, */*;q=0.5"})
        data: bytes | None = None
        if body is not None and body is not MISSING:
            data = orjson.dumps(body)
            headers["Content-Type"] = "application/json"
        environment = self._client.environment
        headers.update({name: environment.fill(value) for name, value in self._headers.items()})
        try:
            return await self._request(self._method, url, headers, data, MAX_REDIRECTS)
        except aiohttp.ClientConnectorError as error:
            cause = getattr(error.__cause__, "strerror", None) or type(error.__cause__ or error).__name__
            raise Failure("error", f"cannot connect to {self._origin}: {cause}", sent=False) from None
        except aiohttp.ClientError as error:
            raise Failure("error", f"the exchange with {self._origin} failed: {type(error).__name__}") from None

    async def _request(
        self, method: str, url: str, headers: CIMultiDict[str], data: bytes | None, redirects: int
    ) -> Any:
        session = self._client.session
        async with session.request(
            method, URL(url, encoded=True), headers=headers, data=data, allow_redirects=False
        ) as answer:
            if answer.status in (301, 302, 303, 307, 308) and "Location" in answer.headers:
                method, url = self._redirected(method, answer, redirects)
                data = data if answer.status in (307, 308) else None
            else:
                return await self._read(answer)
        return await self._request(method, url, headers, data, redirects - 1)

    def _redirected(self, method: str, answer: aiohttp.ClientResponse, redirects: int) -> tuple[str, str]:
        """Method and URL of the next request. Failure when it would leave the host."""
        here = answer.url
        try:
            target = here.join(URL(answer.headers["Location"]))
            place = (target.scheme, target.host, target.port)
        except ValueError:
            raise Failure("error", "a redirect to something that is no URL", retryable=False) from None
        upgraded = here.is_default_port() and here.scheme == "http" and place == ("https", here.host, 443)
        if place != (here.scheme, here.host, here.port) and not upgraded:
            raise Failure("error", f"a redirect to another host, {target.host}, was not followed", retryable=False)
        if not redirects:
            raise Failure("error", f"more than {MAX_REDIRECTS} redirects", retryable=False)
        if answer.status in (307, 308) or method == "GET":
            return method, str(target)
        return "GET", str(target)

    async def _read(self, answer: aiohttp.ClientResponse) -> Any:
        raw, whole = await _bounded(answer.content)
        try:
            text = raw.decode(answer.charset or "utf-8", "replace")
        except LookupError:  # a charset that Python does not know
            text = raw.decode("utf-8", "replace")
        text = self._client.environment.hide(text)
        if answer.status >= 300:
            raise self._refusal(answer, text)
        must_be_json = self._pick is not None or self._form.has_schema
        if not whole and must_be_json:
            raise Failure("error", f"the answer is longer than {MAX_ANSWER_BYTES} bytes", retryable=False)
        if not raw.strip():
            if self._pick is None and self._form.fits(None):
                return None
            raise Failure("error", f"the tool gave no result (HTTP {answer.status}, empty)", retryable=False)
        if not whole or not (must_be_json or "json" in answer.content_type):
            return text
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            start = shorten(text.strip(), 200)
            raise Failure("error", f"the answer is not JSON: {error}; it begins: {start}") from None
        return value if self._pick is None else self._picked(value)

    def _picked(self, value: Any) -> Any:
        found = at_pointer(value, self._pick or "")
        if found is MISSING:
            raise Failure("error", f"the answer has nothing at {self._pick}", retryable=False)
        return found

    def _refusal(self, answer: aiohttp.ClientResponse, text: str) -> Failure:
        said = " ".join(text.split())
        message = f"HTTP {answer.status} {answer.reason or ''}".rstrip() + (f": {shorten(said, 300)}" if said else "")
        wait = answer.headers.get("Retry-After", "")
        return Failure(
            "denied" if answer.status in (401, 403) else "error",
            message,
            retryable=answer.status in _PASSING,
            retry_after=float(wait) if wait.isascii() and wait.isdigit() else None,
        )

    def _target(self, args: dict[str, Any]) -> str:
        segments = [self._encoded(segment, args) for segment in self._path.split("/")]
        if any(segment in (".", "..") for segment in segments):
            raise Failure("invalid", "an argument of `.` or `..` cannot be part of the address", retryable=False)
        url = self._origin + "/".join(segments)
        # A pair of the query whose argument was left out is left out with it.
        pairs = [pair for pair in self._query.split("&") if {*_PLACEHOLDER.findall(pair)} <= args.keys()]
        query = "&".join(self._encoded(pair, args) for pair in pairs if pair)
        return f"{url}?{query}" if query else url

    def _encoded(self, text: str, args: dict[str, Any]) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] not in args:
                raise Failure("invalid", "an argument that is part of the address is missing", retryable=False)
            return quote(_as_text(args[match[1]]), safe="")

        return _PLACEHOLDER.sub(value, text)

    def _fill(self, node: Any, args: dict[str, Any]) -> Any:
        """`node` with its placeholders filled in; a member whose argument was left out is left out."""
        if isinstance(node, dict):
            filled = {key: self._fill(value, args) for key, value in node.items()}
            return {key: value for key, value in filled.items() if value is not MISSING}
        if isinstance(node, list):
            return [value for item in node if (value := self._fill(item, args)) is not MISSING]
        if not isinstance(node, str):
            return node
        whole = _PLACEHOLDER.fullmatch(node)
        if whole and whole[1] in self._known:
            return args.get(whole[1], MISSING)
        named = {name for name in _PLACEHOLDER.findall(node) if name in self._known}
        if not named <= args.keys():
            return MISSING
        return _PLACEHOLDER.sub(lambda m: _as_text(args[m[1]]) if m[1] in named else m[0], node)


def at_pointer(value: Any, pointer: str) -> Any:
    """The part of `value` at a JSON Pointer (RFC 6901); MISSING where there is none."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return MISSING
    return value


async def _bounded(stream: aiohttp.StreamReader) -> tuple[bytes, bool]:
    """The body, and whether that is all of it."""
    out = bytearray()
    async for chunk in stream.iter_any():
        out += chunk
        if len(out) > MAX_ANSWER_BYTES:
            return bytes(out[:MAX_ANSWER_BYTES]), False
    return bytes(out), True


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
