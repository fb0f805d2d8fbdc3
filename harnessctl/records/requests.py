"""Requests: reading comment inputs, every bad line named before any is answered."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import orjson

from harnessctl.errors import Fault, FaultsError
from harnessctl.records.comment import CommentInput

MAX_LINE_BYTES = 4 << 20


def read_requests(lines: Iterable[bytes], *, source: str) -> list[CommentInput]:
    """The requests in JSON Lines. FaultsError lists every line that is none, with line, cause and what is allowed."""
    requests: list[CommentInput] = []
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if number == 1:
            text = text.removeprefix(b"\xef\xbb\xbf")
        if not text:
            continue
        found = _read_one(text, source, number)
        if isinstance(found, Fault):
            faults.append(found)
        elif found.id in seen:
            faults.append(
                Fault(
                    source,
                    number,
                    1,
                    "E-INPUT-ID",
                    f"id {found.id!r} is taken by line {seen[found.id]}",
                    hint="ids are unique in a file",
                )
            )
        else:
            seen[found.id] = number
            requests.append(found)
    if faults:
        raise FaultsError(faults)
    return requests


def _read_one(text: bytes, source: str, number: int) -> CommentInput | Fault:
    """One request, or what is wrong with the line."""
    if len(text) > MAX_LINE_BYTES:
        return Fault(
            source, number, 1, "E-INPUT-SIZE", "the line is too long", f"{len(text)} bytes", f"{MAX_LINE_BYTES}"
        )
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return Fault(source, number, error.colno, "E-INPUT-JSON", f"not JSON: {error.msg}")
    try:
        request = msgspec.convert(document, CommentInput)
    except msgspec.ValidationError as error:
        return Fault(source, number, 1, "E-INPUT-FORM", str(error), hint="`harnessctl schema CommentInput` is the form")
    if (request.text is None) == (request.messages is None):
        got = "neither" if request.text is None else "both"
        return Fault(
            source, number, 1, "E-INPUT-FORM", "a request has `text` or `messages`", got, "exactly one of them"
        )
    return request
