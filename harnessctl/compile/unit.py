"""Unit: one source file on its way through a compile, and what it gives to one harness.

A source is read once (`outline`: the names that it declares) and bound once for each harness that includes it
(`Bound`). Both are plain JSON and depend only on the file's bytes, the names in scope and the files listed in
`depends`, so that a cache may keep them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from harnessctl.compile.scope import Scope
from harnessctl.errors import Fault, Faults, Severity
from harnessctl.manifests.locate import SourceFile

#: Path of a file that was looked for besides the source, to its SHA-256; "": it is there, whatever is in it; None: it
#: is not there.
Depends = dict[str, str | None]


class Bound(msgspec.Struct, kw_only=True):
    """What one source gives one harness.

    `state` is made of the parts of a HarnessState as plain JSON, by a name of the kind's own; `places` maps a state path
    to [path, line, col]; `links` is what can only be checked when all sources of the harness are known.
    """

    state: dict[str, Any] = {}
    places: dict[str, list[Any]] = {}
    faults: list[dict[str, Any]] = []
    links: dict[str, list[list[Any]]] = {}
    code: dict[str, str] = {}
    files: dict[str, str] = {}
    depends: Depends = {}

    @property
    def embedded(self) -> dict[str, str]:
        """Path to SHA-256 of the project's files that went into this."""
        return {path: digest for path, digest in self.depends.items() if digest and not path.startswith("/")}

    def need(self, link: str, *what: Any) -> None:
        """Note something for the link pass."""
        self.links.setdefault(link, []).append(list(what))


class Kind(Protocol):
    """How sources of one kind are read and bound; a module of this package is one."""

    def read(self, file: SourceFile, data: bytes, faults: Faults) -> Any:
        """The parsed source, or None when it cannot be used at all."""
        ...

    def outline(self, file: SourceFile, parsed: Any) -> dict[str, Any]:
        """The names that the source declares, with their places, as plain JSON."""
        ...

    def bind(self, file: SourceFile, parsed: Any, scope: Scope, faults: Faults) -> Bound:
        """What the source gives to the harness of `scope`."""
        ...


_MODULES = {
    "Harness": "harnessctl.compile.harnesses",
    "Skill": "harnessctl.compile.skills",
    "Examples": "harnessctl.compile.examples",
    "Tools": "harnessctl.compile.tools",
    "Hooks": "harnessctl.compile.hooks",
    "PromptPipeline": "harnessctl.compile.prompts",
    "World": "harnessctl.compile.worlds",
}
#: Kinds whose binding depends on names alone; any other depends on all that a scope knows.
_BY_NAMES = frozenset({"Skill", "PromptPipeline"})


def kind_of(file: SourceFile) -> Kind:
    """The module that reads sources of the kind; imported only when a source has to be read."""
    module: Any = importlib.import_module(_MODULES[file.kind])
    return module


class Unit:
    """One source: its bytes, and what has been made of them so far. `used` are the keys of `bound` asked for."""

    def __init__(self, file: SourceFile, data: bytes, digest: str) -> None:
        self.file = file
        self.data = data
        self.digest = digest
        self.outline: dict[str, Any] = {}
        self.faults: list[dict[str, Any]] = []
        self.bound: dict[str, Bound] = {}
        self.used: set[str] = set()
        self._parsed: Any = None
        self._is_read = False

    def read(self) -> Any:
        """The parsed source; read once. Sets `outline` and the faults of reading."""
        if not self._is_read:
            found = Faults()
            kind = kind_of(self.file)
            self._parsed = kind.read(self.file, self.data, found)
            self.outline = kind.outline(self.file, self._parsed) if self._parsed is not None else {}
            self.faults = [fault.as_dict() for fault in found.items]
            self._is_read = True
        return self._parsed

    def bind(self, scope: Scope, is_current: Callable[[Depends], bool]) -> Bound:
        """What the source gives to the harness of `scope`, made now or kept from before."""
        key = scope.text_digest if self.file.kind in _BY_NAMES else scope.full_digest
        self.used.add(key)
        bound = self.bound.get(key)
        if bound is None or not is_current(bound.depends):
            found = Faults()
            parsed = self.read()
            bound = kind_of(self.file).bind(self.file, parsed, scope, found) if parsed is not None else Bound()
            bound.faults = [fault.as_dict() for fault in found.items]
            self.bound[key] = bound
        return bound


def fault_at(
    place: Sequence[Any],
    code: str,
    message: str,
    got: str = "",
    allowed: str = "",
    hint: str = "",
    severity: Severity = "error",
) -> Fault:
    """A fault at [path, line, col], as outlines and bound sources keep places."""
    path, line, col = place
    return Fault(path, line, col, code, message, got, allowed, hint, severity)


def faults_of(dicts: list[dict[str, Any]]) -> list[Fault]:
    """Faults from their plain form."""
    return [Fault(**fault) for fault in dicts]
