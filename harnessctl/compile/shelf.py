"""Shelf: what was made of each source, kept between compiles by the digest of its content.

Only what had no fault is kept: a fault may depend on anything in the project, and is looked for again each time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harnessctl.compile.fresh import CACHE, compiler_key, read_checked, write_checked
from harnessctl.compile.unit import Bound, Unit
from harnessctl.manifests.locate import look
from harnessctl.storage import digest_bytes

UNITS = "units.json"


class Shelf:
    """The kept units of one project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        kept = read_checked(root / CACHE / UNITS)
        usable = isinstance(kept, dict) and kept.get("key") == compiler_key() and isinstance(kept.get("units"), dict)
        self._units: dict[str, dict[str, Any]] = kept["units"] if usable else {}
        self._digests: dict[str, str | None] = {}
        #: What was restored, with the plain form that it was made of: most of it is kept again as it is.
        self._restored: dict[str, dict[str, tuple[Bound, Any]]] = {}

    def restore(self, unit: Unit) -> bool:
        """Give a unit what is kept of the same bytes; whether there was anything."""
        kept = self._units.get(unit.file.path)
        if kept is None or kept["digest"] != unit.digest:
            return False
        unit.outline = kept["outline"]
        unit.faults = kept["faults"]
        unit.bound = {key: msgspec.convert(bound, Bound) for key, bound in kept["bound"].items()}
        self._restored[unit.file.path] = {key: (unit.bound[key], plain) for key, plain in kept["bound"].items()}
        return True

    def is_current(self, depends: dict[str, str | None]) -> bool:
        """Whether the files that a source needed are as they were."""
        for path, digest in depends.items():
            if not digest:
                if (look(self.root, path) != "nothing") != (digest == ""):
                    return False
            elif self._digest(path) != digest:
                return False
        return True

    def _digest(self, path: str) -> str | None:
        if path not in self._digests:
            try:
                self._digests[path] = digest_bytes((self.root / path).read_bytes())
            except OSError:
                self._digests[path] = None
        return self._digests[path]

    def keep(self, units: list[Unit]) -> None:
        """Write what was made of the units, in place of what was kept before."""
        kept = {}
        for unit in units:
            if any(fault["severity"] == "error" for fault in unit.faults):
                continue
            bound = {key: self._plain(unit, key) for key in unit.used if not _has_error(unit.bound[key])}
            kept[unit.file.path] = {
                "digest": unit.digest,
                "outline": unit.outline,
                "faults": unit.faults,
                "bound": bound,
            }
        write_checked(self.root / CACHE / UNITS, {"key": compiler_key(), "units": kept})

    def _plain(self, unit: Unit, key: str) -> Any:
        """A bound source as JSON keeps it."""
        bound, plain = self._restored.get(unit.file.path, {}).get(key, (None, None))
        return plain if bound is unit.bound[key] else msgspec.to_builtins(unit.bound[key])


def _has_error(bound: Bound) -> bool:
    return any(fault["severity"] == "error" or fault["code"] == "command-not-found" for fault in bound.faults)
