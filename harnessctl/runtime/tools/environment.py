"""Environment: `${NAME}` in headers and server settings is filled in from the environment, and never shown again.

What always holds: a bundle holds only the names; the values live in memory, and every text that leaves a tool (result,
error, warning) has them hidden.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
#: A shorter value is no secret, and hiding it would spoil unrelated text.
_MIN_HIDDEN_CHARS = 6


class Environment:
    """Fills `${NAME}` and `${NAME:-default}` in from `env` and remembers the values that it gave out."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._given: set[str] = set()
        self._hidden: re.Pattern[str] | None = None

    def missing(self, value: Any) -> list[str]:
        """The variables that `value` (text, or lists and maps of it) names and that are neither set nor defaulted."""
        if isinstance(value, str):
            found = (match.groups() for match in _VARIABLE.finditer(value))
            return sorted({name for name, default in found if default is None and name not in self._env})
        if isinstance(value, Mapping):
            value = list(value.values())
        return sorted({name for item in value for name in self.missing(item)}) if isinstance(value, list) else []

    def broken_header(self, headers: Mapping[str, str]) -> str | None:
        """The first header whose value would hold a line break, which HTTP does not allow."""
        return next((name for name, value in headers.items() if re.search(r"[\r\n\0]", self.fill(value))), None)

    def fill(self, text: str) -> str:
        """`text` with its variables filled in; KeyError for one that is missing."""

        def value(match: re.Match[str]) -> str:
            name, default = match.groups()
            if name not in self._env and default is not None:
                return default
            given = self._env[name]
            if len(given) >= _MIN_HIDDEN_CHARS and given not in self._given:
                self._given.add(given)
                self._hidden = re.compile("|".join(map(re.escape, sorted(self._given, key=len, reverse=True))))
            return given

        return _VARIABLE.sub(value, text)

    def hide(self, text: str) -> str:
        """`text` with every value that was filled in replaced by `***`."""
        return text if self._hidden is None else self._hidden.sub("***", text)
