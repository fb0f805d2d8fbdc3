"""Requests: reading comment inputs, every bad line named before any is answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import msgspec
import orjson

from harnessctl.errors import Fault, FaultsError
from harnessctl.records.comment import CommentInput

MAX_LINE_BYTES = 4 << 20
#: Faults beyond this many are counted, not listed.
MAX_LISTED = 50
#: A line with fewer brackets than this cannot nest too deeply to be recorded.
_FEW_BRACKETS = 200

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_FORM = "`harnessctl schema CommentInput` is the form"


def request_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of `file`; of one beyond MAX_LINE_BYTES only so much that it is seen to be too long."""
    while line := file.readline(MAX_LINE_BYTES + 2):
        yield line
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)


def read_requests(lines: Iterable[bytes], *, source: str) -> list[CommentInput]:
    """The requests in JSON Lines. FaultsError lists every line that is none, with line, cause and what is allowed."""
    requests: list[CommentInput] = []
    faults: list[Fault] = []
    count = 0
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if number == 1:
            text = text.removeprefix(b"\xef\xbb\xbf")
        if not text:
            continue
        found = _read_one(text, source, number)
        if isinstance(found, CommentInput) and found.id in seen:
            found = Fault(
                source, number, 1, "input-id", f"id {found.id!r} is taken by line {seen[found.id]}",
                hint="ids are unique in a file",
            )  # fmt: skip
        if isinstance(found, Fault):
            count += 1
            if count <= MAX_LISTED:
                faults.append(found)
        else:
            seen[found.id] = number
            requests.append(found)
    if count > MAX_LISTED:
        faults.append(Fault(source, 0, 0, "input-more", f"{count - MAX_LISTED} more lines are no requests"))
    if faults:
        raise FaultsError(faults)
    return requests


def _read_one(text: bytes, source: str, number: int) -> CommentInput | Fault:
    """One request, or what is wrong with the line."""
    if len(text) > MAX_LINE_BYTES:
        return Fault(
            source, number, 1, "input-size", "the line is too long", f"more than {MAX_LINE_BYTES} bytes",
            f"{MAX_LINE_BYTES}",
        )  # fmt: skip
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        document = _mended(text)
        if document is None:
            return _not_json(text, source, number, error)
    if isinstance(document, list):
        return Fault(
            source, number, 1, "input-form", "a line is one request", "an array", "an object",
            "`jq -c '.[]'` writes the members of an array as lines",
        )  # fmt: skip
    if text.count(b"[") + text.count(b"{") > _FEW_BRACKETS and _is_too_deep(document):
        return Fault(source, number, 1, "input-form", "the line nests too deeply", allowed="about 250 levels")
    try:
        request = msgspec.convert(document, CommentInput)
    except msgspec.ValidationError as error:
        return Fault(source, number, 1, "input-form", str(error), hint=_FORM)
    if (request.text is None) == (request.messages is None):
        got = "neither" if request.text is None else "both"
        return Fault(
            source, number, 1, "input-form", "a request has `text` or `messages`", got, "exactly one of them"
        )  # fmt: skip
    return request


def _mended(text: bytes) -> Any:
    """The document of a line whose only fault is a lone surrogate (`\\ud83d`, half an emoji), which becomes U+FFFD;
    None for any other. Logs that were cut at a fixed length have them."""
    if b"\\ud" not in text.lower():
        return None
    try:
        return _without_surrogates(json.loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _without_surrogates(item) for key, item in value.items()}
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _is_too_deep(document: Any) -> bool:
    """Whether a record could not hold the document."""
    try:
        orjson.dumps(document)
    except TypeError:  # orjson.JSONEncodeError
        return True
    return False


def _not_json(text: bytes, source: str, number: int, error: orjson.JSONDecodeError) -> Fault:
    try:
        text.decode()
    except UnicodeDecodeError as wrong:
        hint = "save the file as UTF-8"
        if text[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in text[:4]:
            hint += "; it is UTF-16 (`iconv -f UTF-16 -t UTF-8`)"
        elif _is_gbk(text):
            hint += "; it may be GBK (`iconv -f GB18030 -t UTF-8`)"
        got = f"byte 0x{text[wrong.start]:02x}"
        return Fault(source, number, wrong.start + 1, "input-encoding", "the line is not UTF-8", got, "UTF-8", hint)
    if b"\0" in text:
        return Fault(
            source, number, text.index(b"\0") + 1, "input-encoding", "the line has NUL characters", "U+0000", "UTF-8",
            "it may be UTF-16 (`iconv -f UTF-16 -t UTF-8`)",
        )  # fmt: skip
    return Fault(source, number, error.colno, "input-json", f"not JSON: {error.msg}")


def _is_gbk(text: bytes) -> bool:
    try:
        text.decode("gb18030")
    except UnicodeDecodeError:
        return False
    return True
