"""Viewer identifiers: kept, replaced by a keyed hash, or dropped before a request is carried out [15 of the design].

What always holds: the change is made on the request, before the model, the tools or the record see it, so that text,
token ids and record agree and the identifier is nowhere in a trajectory. A hash is HMAC-SHA-256 under a key that only
the operator has: equal viewers keep equal names, and nobody without the key can test a name.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Literal

import msgspec

from harnessctl.errors import UsageError
from harnessctl.records.comment import CommentInput, ViewerMessage

Mode = Literal["keep", "hash", "drop"]

#: What a viewer is called who has no name, or whose name was dropped.
ANONYMOUS = "viewer"
_HASH_CHARS = 12


class ViewerNames:
    """How viewers are named in requests. `key` (secret, from the environment) is needed to hash.

    `drop` numbers the viewers of one request (`viewer-1`, `viewer-2`) where there are several, so that a
    conversation can still be followed.
    """

    def __init__(self, mode: Mode = "keep", key: bytes = b"") -> None:
        if mode == "hash" and not key:
            raise UsageError(
                "viewer names cannot be hashed without a key", hint="a short list of names is soon guessed"
            )
        self.mode: Mode = mode
        self._key = key

    def apply(self, request: CommentInput) -> CommentInput:
        """`request` with its viewers renamed; the same object where nothing changes."""
        if self.mode == "keep" or request.messages is None:
            return request
        return msgspec.structs.replace(request, messages=self._renamed(request.messages))

    def _renamed(self, messages: list[ViewerMessage]) -> list[ViewerMessage]:
        names = list(dict.fromkeys(m.viewer for m in messages if m.viewer != ANONYMOUS))
        if self.mode == "hash":
            new = {name: f"viewer-{self._hash(name)}" for name in names}
        else:
            new = {name: ANONYMOUS if len(names) == 1 else f"{ANONYMOUS}-{n}" for n, name in enumerate(names, 1)}
        return [msgspec.structs.replace(m, viewer=new.get(m.viewer, m.viewer)) for m in messages]

    def _hash(self, name: str) -> str:
        digest = hmac.new(self._key, name.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return digest.hexdigest()[:_HASH_CHARS]
