"""The request that `harnessctl render` renders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from harnessctl.errors import StorageError, UsageError
from harnessctl.records.comment import CommentInput
from harnessctl.records.requests import read_requests


def one_request(text: str, *, room: str | None, context: str | None, path: str | None) -> CommentInput:
    """The first request of `path`, or one made of the options. UsageError when there is none or the JSON is bad."""
    if path is not None:
        try:
            with Path(path).open("rb") as file:
                found = read_requests(file, source=path)
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        if not found:
            raise UsageError(f"{path} holds no request")
        return found[0]
    return CommentInput(id="render", text=text, room=room, context=context_of(context))


def context_of(text: str | None) -> dict[str, Any]:
    """The context of `--context`. UsageError when it is no JSON object."""
    try:
        given = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError as error:
        raise UsageError(f"--context is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise UsageError("--context is a JSON object", hint="--context '{\"current_link_id\": 3}'")
    return given
