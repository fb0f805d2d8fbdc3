"""Folder: a checkpoint's folder comes into being by one rename.

What always holds: what stands under the target's name is whole and on the disk; a failure or a kill leaves at most a
folder whose name begins with a dot, which the next save to the target removes.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Generator
from pathlib import Path

from harnessctl.checkpoint.shards import copy_file
from harnessctl.errors import CheckpointError, StorageError
from harnessctl.storage import make_folder

LINEAGE = "lineage.json"

#: Weights in other formats, which would be of the policy before; adapters and pickles too.
_OTHER_WEIGHTS = re.compile(
    r".*\.(safetensors|bin|pt|pth|ckpt|h5|msgpack|onnx|onnx_data|gguf|pkl|pickle|npz|ot)(\.index\.json)?"
)
#: A card says where every byte of a pulled model came from, which is true of that folder alone.
_LEFT_OUT = {LINEAGE, "card.json"}


@contextlib.contextmanager
def staged(target: Path) -> Generator[Path]:
    """A folder to write to that takes the name `target` at the end, or goes without a trace on an error.

    An older checkpoint under that name (one with a lineage) is put aside just before, and removed. CheckpointError when
    something else has the name, StorageError when the disk refuses.
    """
    target = target.absolute()
    if target.exists() and not (target / LINEAGE).is_file() and not _is_empty(target):
        raise CheckpointError(
            f"{target} is there already and is no checkpoint of harnessctl's", hint="give a name that is free"
        )
    new, old = (target.with_name(f".{target.name}.{kind}-{secrets.token_hex(4)}") for kind in ("new", "old"))
    try:
        make_folder(target.parent)
        _put_back(target)
        _clean(target)
        new.mkdir()
        yield new
        for folder, _, _ in os.walk(new):
            sync(Path(folder))
        if target.exists():
            target.rename(old)
        new.rename(target)
        sync(target.parent)
        _clean(target)
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        _put_back(target)


def copy_rest(source: Path, target: Path) -> None:
    """Copy every file of `source` that holds no weights, byte for byte: config, tokenizer, templates, licence.

    Left out: lineage and card, which speak of `source`; names with a dot in front; weights in other formats; folders
    that are checkpoints of their own.
    """
    for folder, names, files in os.walk(source):
        names[:] = sorted(name for name in names if not _is_other(Path(folder) / name))
        place = target / Path(folder).relative_to(source)
        for name in sorted(files):
            if name.startswith(".") or _OTHER_WEIGHTS.fullmatch(name) or name in _LEFT_OUT:
                continue
            place.mkdir(parents=True, exist_ok=True)
            copy_file(Path(folder) / name, place / name)


def sync(folder: Path) -> None:
    """Wait until the names in `folder` are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _is_other(folder: Path) -> bool:
    """Whether a folder inside a model's is no part of it: hidden, or a checkpoint of its own."""
    return folder.name.startswith(".") or (folder / LINEAGE).exists()


def _put_back(target: Path) -> None:
    """Give the older checkpoint its name again where a save was killed, or failed, between its two renames."""
    with contextlib.suppress(OSError):
        if not target.exists() and (old := _left(target, "old")):
            old[0].rename(target)


def _clean(target: Path) -> None:
    """Remove what saves to `target` that were killed left behind."""
    for path in _left(target, "new|old"):
        shutil.rmtree(path, ignore_errors=True)


def _left(target: Path, kinds: str) -> list[Path]:
    name = re.compile(rf"\.{re.escape(target.name)}\.({kinds})-[0-9a-f]{{8}}")
    return sorted(path for path in target.parent.iterdir() if name.fullmatch(path.name))
