"""Repeat detector: ends a request in which the model makes one call over and over."""

from __future__ import annotations

from typing import Any

import orjson


class RepeatDetector:
    """Counts identical calls: same name, same arguments whatever their order.

    A write that succeeded changes the world, so that looking again is not a repeat: it forgets all other calls.
    """

    __slots__ = ("_counts", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: dict[tuple[str, bytes], int] = {}

    def repeats(self, name: str, arguments: dict[str, Any] | str) -> bool:
        """Count a call; true when it is the `limit`-th identical one, which is then not to be run."""
        if isinstance(arguments, str):
            key = (name, arguments.encode("utf-8", "surrogatepass"))
        else:
            key = (name, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS))
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return count >= self._limit

    def wrote(self, name: str) -> None:
        """The tool `name`, which writes, succeeded."""
        self._counts = {key: count for key, count in self._counts.items() if key[0] == name}
