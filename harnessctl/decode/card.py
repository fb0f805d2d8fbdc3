"""Model card: the file `card.json` in the folder of a pulled model, which says where every byte came from.

What always holds: the card is written last, before the folder gets its final name, so a folder with a card is whole.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from harnessctl.errors import RecordError, StorageError
from harnessctl.storage import read_bytes, write_atomic

FORMAT = "harnessctl/model-card.v1"
FILE_NAME = "card.json"


class Source(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The package that the weights came in: its file, the file inside it, and the SHA-256 of both."""

    package: str
    version: str
    file: str
    sha256: str
    member: str
    member_sha256: str
    url: str


class StoredFile(msgspec.Struct, forbid_unknown_fields=True):
    """One file of the folder."""

    bytes: int
    sha256: str


class ModelCard(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a pulled model is, under which licence, made from what and by which versions of the tools."""

    name: str
    title: str
    licence: str
    source: Source
    parameters: int
    dtype: str
    made_by: dict[str, str]
    files: dict[str, StoredFile]
    format: str = FORMAT


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces; StorageError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def describe_files(folder: Path) -> dict[str, StoredFile]:
    """Size and digest of every file in `folder`, in order of name, the card itself left out."""
    return {
        path.name: StoredFile(path.stat().st_size, file_sha256(path))
        for path in sorted(folder.iterdir())
        if path.name != FILE_NAME
    }


def write_card(folder: Path, card: ModelCard) -> None:
    """Write the card of `folder`, atomically."""
    write_atomic(folder / FILE_NAME, msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")


def read_card(folder: Path) -> ModelCard | None:
    """The card of `folder`; None where there is none; RecordError when it is not one of this version."""
    path = folder / FILE_NAME
    if not path.exists():
        return None
    try:
        card = msgspec.json.decode(read_bytes(path), type=ModelCard)
    except msgspec.DecodeError as error:
        raise RecordError(
            f"{path}: not a model card: {error}", hint="remove the folder and pull the model again"
        ) from error
    if card.format != FORMAT:
        raise RecordError(f"{path}: a model card of format {card.format!r}; allowed {FORMAT!r}")
    return card


def altered_files(folder: Path, card: ModelCard, *, content: bool) -> list[str]:
    """Names of the card's files that are missing or of another size, and with `content` of another digest."""
    return [
        name
        for name, stored in card.files.items()
        if not (path := folder / name).is_file()
        or path.stat().st_size != stored.bytes
        or (content and file_sha256(path) != stored.sha256)
    ]
