"""Lineage of a checkpoint folder: reading it, writing it, and the one that a stage's result has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harnessctl.checkpoint.folder import LINEAGE
from harnessctl.checkpoint.layout import HEAD, read_layout, weights_digest
from harnessctl.checkpoint.tokenizer import tokenizer_digest
from harnessctl.errors import RecordError
from harnessctl.records.lineage import FORMAT, Head, Lineage
from harnessctl.storage import digest, read_bytes, write_atomic


def read_lineage(folder: Path) -> Lineage | None:
    """The lineage of a checkpoint; None for a model that harnessctl did not make. RecordError for what is none, or is of
    another version."""
    path = folder / LINEAGE
    if not path.exists():
        return None
    content = read_bytes(path)
    try:
        return msgspec.json.decode(content, type=Lineage)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: not a lineage of {FORMAT}: {error}") from error


def write_lineage(folder: Path, lineage: Lineage) -> None:
    """Write `lineage.json` of a folder, atomically."""
    write_atomic(folder / LINEAGE, msgspec.json.format(msgspec.json.encode(lineage), indent=2) + b"\n")


def next_lineage(source: Path, *, stage: str, recipe: dict[str, Any], **known: Any) -> Lineage:
    """The lineage of what `stage` will make of the checkpoint `source`: its weights are the parent, its base is the base
    (its own weights where it has no lineage). `known` are further fields of Lineage.

    Reads every byte of `source`: a lineage is believed in what it says of others, not of its own folder.
    """
    parent = weights_digest(source)
    before = read_lineage(source)
    has_tokenizer = (source / "tokenizer.json").is_file()
    found: dict[str, Any] = {
        "base": parent if before is None else before.base,
        "base_path": str(source) if before is None else before.base_path,
        "tokenizer": tokenizer_digest(source) if has_tokenizer else None,
        **known,
    }
    return Lineage(
        stage=stage, recipe=recipe, recipe_digest=digest(recipe), parent=parent, parent_path=str(source), **found
    )


def is_base(lineage: Lineage, folder: Path) -> bool:
    """Whether the policy's weights in `folder` are those of the lineage's base. Reads every byte of them."""
    return weights_digest(folder) == lineage.base


def known_head(folder: Path) -> Head:
    """What is known of the draft head in `folder`: as its lineage says, or as it came with the model."""
    has_head = any(name.startswith(HEAD) for name in read_layout(folder).files)
    if not has_head:
        return Head()
    lineage = read_lineage(folder)
    if lineage is None or lineage.head.state == "none":
        return Head(state="carried", source="native")
    return lineage.head
