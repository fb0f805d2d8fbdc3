"""GoldCall: a call that a right answer makes, in canonical names."""

from __future__ import annotations

from typing import Any

import msgspec


class GoldCall(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A call. `compare` lists the arguments that must be equal; null means all that are given."""

    tool: str
    arguments: dict[str, Any] = {}
    compare: list[str] | None = None
