"""Answers: what queries over tables that nobody has written to came to, kept for all sandboxes of a world.

What always holds: an answer is a fresh value each time, so that nobody changes another's; a query that is kept reads and
does nothing else (see `context.reading_fault`), so that equal values give equal answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import orjson

#: So many answers are kept; then all are forgotten, which costs less than to know the oldest.
KEPT = 8192


class Answers:
    """Answers as JSON by what was asked. Safe to use from several threads: at worst one is worked out twice."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, bytes] = {}

    def get(self, asked: Hashable, work_out: Callable[[], Any]) -> Any:
        """The answer that is kept, or else what `work_out` gives."""
        found = self._kept.get(asked)
        if found is not None:
            return orjson.loads(found)
        answer = work_out()
        if len(self._kept) >= KEPT:
            self._kept.clear()
        self._kept[asked] = orjson.dumps(answer)
        return answer
