"""Failure: what an endpoint or the way to it did wrong, as a ModelError.

What always holds: a message names the endpoint, is one short line, and contains no secret that was sent.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
import socket
from collections.abc import Iterable, Mapping

import aiohttp
import msgspec
import orjson

from harnessctl.errors import ModelError

_MAX_CHARS = 300
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_KEY = re.compile(r"\b(?:sk|pk|key|hf|gsk|xai)[-_][\w*.-]{6,}|(?i:\bbearer\s+)\S+")

#: Statuses that another try may mend, besides 5xx: request time-out, too early, too many requests.
_RETRYABLE = frozenset({408, 425, 429})

_HINTS = {
    401: "the key is read from the environment variable that key_env names (OPENAI_API_KEY by default)",
    403: "the key is read from the environment variable that key_env names (OPENAI_API_KEY by default)",
    404: "base_url usually ends in /v1; check the model's name too",
    405: "base_url usually ends in /v1",
}


def shorten(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` as one line of at most 300 characters, without control characters, secrets and what looks like a key."""
    text = text[:20_000]
    for secret in secrets:
        text = text.replace(secret, "***")
    text = "".join(char if char.isprintable() else " " for char in _KEY.sub("***", text))
    text = " ".join(text.split())
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """The wait in seconds that the headers ask for: `retry-after-ms`, seconds, or an HTTP date against `now` (UTC).

    Null when they ask for none or for nonsense; never negative.
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            wait = float(value) * scale
        except ValueError:
            try:
                wait = email.utils.parsedate_to_datetime(value).timestamp() - now
            except (ValueError, OverflowError):
                continue
        if math.isfinite(wait):
            return max(0.0, wait)
    return None


def status_failure(
    endpoint: str, status: int, headers: Mapping[str, str], body: bytes, *, now: float, secrets: Iterable[str]
) -> ModelError:
    """The error for an answer whose status is not 2xx."""
    said, code = _said(body)
    retryable = status in _RETRYABLE or status >= 500
    hint = _HINTS.get(status, "")
    if code == "insufficient_quota":
        retryable, hint = False, "the account is out of quota; waiting does not help"
    elif 300 <= status < 400:
        said = f"redirects to {headers.get('location', 'nowhere')}"
        hint = "redirects are not followed, so that the key goes to one place only; correct base_url"
    return ModelError(
        f"{endpoint} answered {status}: {shorten(said, secrets) or 'nothing more'}",
        retryable=retryable,
        retry_after=retry_after_s(headers, now) if retryable else None,
        hint=hint,
    )


def _said(body: bytes) -> tuple[str, str]:
    """(message, code) of an error body: OpenAI's, vLLM's or FastAPI's JSON, the title of a page, or the text itself."""
    if body.lstrip()[:1] == b"<":
        title = _TITLE.search(body)
        return "a web page, " + repr(title[1].decode(errors="replace").strip()) if title else "a web page", ""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace"), ""
    return _said_in(document)


def _said_in(document: object) -> tuple[str, str]:
    """(message, code) of a decoded error."""
    if isinstance(document, dict):
        code = str(document.get("code") or document.get("type") or "")
        for key in ("error", "message", "detail"):
            inner = document.get(key)
            if isinstance(inner, dict):
                return _said_in(inner)
            if isinstance(inner, str):
                return inner, code
    return json.dumps(document, ensure_ascii=False), ""


def reported_failure(endpoint: str, error: object, *, secrets: Iterable[str]) -> ModelError:
    """The error for an `error` inside an answer whose status was 2xx: the endpoint gave up after it had begun.

    Retryable unless it carries the code of a request that is wrong.
    """
    code = error.get("code") if isinstance(error, dict) else None
    said, _ = _said_in({"error": error})
    wrong = isinstance(code, int) and 400 <= code < 500 and code not in _RETRYABLE
    return ModelError(f"{endpoint} gave up: {shorten(said, secrets)}", retryable=not wrong)


def unreadable(endpoint: str, body: bytes, error: Exception | str, *, secrets: Iterable[str]) -> ModelError:
    """The error for an answer that is not a chat completion.

    What is not JSON may be a torn answer and is worth another try; a page or a wrong shape is not.
    """
    if body.lstrip()[:1] == b"<":
        return ModelError(
            f"{endpoint} answered with {shorten(_said(body)[0], secrets)}, not with JSON",
            retryable=False,
            hint="base_url usually ends in /v1; is there a proxy or a login page before the endpoint?",
        )
    shown = shorten(body[:2000].decode(errors="replace"), secrets)[:120]
    if isinstance(error, (str, msgspec.ValidationError)):
        return ModelError(f"{endpoint} did not answer as chat completions do: {error}; got {shown}", retryable=False)
    return ModelError(f"{endpoint} answered with broken JSON ({error}); got {shown or 'nothing'}", retryable=True)


def connection_failure(endpoint: str, error: aiohttp.ClientError | OSError, *, secrets: Iterable[str]) -> ModelError:
    """The error for a request that got no answer, or only the beginning of one."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            again = isinstance(error.os_error, socket.gaierror) and error.os_error.errno == socket.EAI_AGAIN
            return ModelError(f"the host of {endpoint} has no address", retryable=again, hint="check base_url")
        case aiohttp.ClientConnectorCertificateError():
            return ModelError(
                f"the certificate of {endpoint} is not trusted: {shorten(str(error.certificate_error), secrets)}",
                retryable=False,
                hint="SSL_CERT_FILE may name a file with your own authority's certificate",
            )
        case aiohttp.ClientSSLError():
            return ModelError(
                f"no TLS with {endpoint}: {shorten(str(error.os_error), secrets)}",
                retryable=False,
                hint="does the endpoint speak plain http?",
            )
        case aiohttp.ClientConnectorError():
            cause = error.os_error.strerror or str(error.os_error)
            return ModelError(f"cannot connect to {endpoint}: {shorten(cause, secrets)}", retryable=True)
        case aiohttp.ServerTimeoutError():
            return ModelError(f"cannot connect to {endpoint}: no answer in time", retryable=True)
        case aiohttp.ClientPayloadError():
            return ModelError(f"the answer of {endpoint} was cut off", retryable=True)
        case aiohttp.ClientResponseError():
            return ModelError(f"{endpoint} does not answer in HTTP: {shorten(error.message, secrets)}", retryable=True)
        case _:
            cause = shorten(str(error), secrets) or type(error).__name__
            return ModelError(f"the connection to {endpoint} broke: {cause}", retryable=True)


def cut_stream(endpoint: str) -> ModelError:
    """The error for a stream that ended before the reply did."""
    return ModelError(f"the stream of {endpoint} ended before the reply was finished", retryable=True)
