"""Cache: what a model wrote for a text, one file for each, by content.

What always holds: a file is whole or absent (atomic writes); an entry that cannot be read, or is of another text, is
reported and taken as absent, never used. The same text, kind, model and version of the prompt have the same file.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from harnessctl.augment.operator import TextKind
from harnessctl.bundle.text import Text
from harnessctl.errors import StorageError
from harnessctl.storage import canonical_json, digest, write_atomic

FORMAT = "harnessctl/wordings.v1"


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model was asked for: everything that its answer depends on."""

    text: Text
    kind: TextKind
    model: str
    prompt: int

    def key(self) -> str:
        """SHA-256 of all fields."""
        return digest(msgspec.to_builtins(self))


class Entry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`answers` are as the model wrote them, with placeholders; they are checked whenever they are read."""

    format: str = FORMAT
    asked: Asked
    answers: list[str]


class Cache:
    """A folder of entries. `corrupt` names the files that were found broken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.corrupt: list[str] = []

    def path(self, asked: Asked) -> Path:
        """The file of an entry; folders of two digits keep listings short."""
        key = asked.key()
        return self.folder / key[:2] / f"{key}.json"

    def read(self, asked: Asked) -> list[str] | None:
        """The answers; null when there are none that can be used. StorageError where the file may not be read."""
        path = self.path(asked)
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        try:
            entry = msgspec.json.decode(data, type=Entry)
        except msgspec.DecodeError as error:
            self._report(path, str(error))
            return None
        if entry.format != FORMAT or entry.asked != asked:
            self._report(path, "it is of another text or format")
            return None
        return entry.answers

    def write(self, asked: Asked, answers: list[str]) -> None:
        """Keep `answers`; StorageError when the disk refuses."""
        entry = Entry(asked=asked, answers=answers)
        write_atomic(self.path(asked), canonical_json(msgspec.to_builtins(entry)) + b"\n")

    def _report(self, path: Path, cause: str) -> None:
        said = f"{path}: not an entry of the cache of wordings: {cause}"
        if said not in self.corrupt:
            self.corrupt.append(said)
