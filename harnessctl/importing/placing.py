"""Placing: files into the project, whole or not at all.

What always holds: a reader of the project sees the old state of a skill or manifest or the new one; nothing that exists
is replaced unless `force` says so, and then a note names it; nothing is written outside the project.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from harnessctl.errors import StorageError, UsageError
from harnessctl.importing.report import Entry
from harnessctl.storage import write_atomic


def project_folder(project: Path) -> Path:
    """The absolute root to write into; UsageError when there is no folder."""
    if not project.is_dir():
        raise UsageError(f"no project folder at {project}", hint="make one with `harnessctl init`")
    return project.resolve()


def place(
    root: Path, files: Mapping[str, bytes], entry: Entry, *, force: bool, dry_run: bool, folder: str = ""
) -> None:
    """Write `files` ({project path: bytes}) and set the entry's outcome.

    With `folder` (a project path that holds them all) the folder is put in place as one; files of an older one that
    are not among the new ones stay. Otherwise the files are written one after the other, the last one last.
    """
    entry.files = list(files)
    entry.outcome = "imported"
    existing = [path for path in files if (root / path).exists() or (root / path).is_symlink()]
    differing = [path for path in existing if not _same(root / path, files[path])]
    if len(existing) == len(files) and not differing:
        entry.outcome = "unchanged"
        return
    outside = next((path for path in files if not (root / path).resolve().is_relative_to(root)), None)
    if outside is not None:
        entry.refuse(f"{outside} leads out of the project through a symbolic link")
        return
    blocked = next((p for path in files for p in Path(path).parents if (root / p).is_file()), None)
    if blocked is not None:
        entry.refuse(f"{blocked.as_posix()} is a file, and a folder is needed there")
        return
    if differing and not force:
        entry.refuse(f"{differing[0]} exists with other content; --force replaces it")
        return
    for path in differing:
        entry.note("changed", 0, f"{path} existed with other content and is replaced")
    if dry_run:
        return
    if folder:
        _place_folder(root, folder, files)
    else:
        for path, data in files.items():
            write_atomic(root / path, data)


def _same(path: Path, data: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == data


def _place_folder(root: Path, folder: str, files: Mapping[str, bytes]) -> None:
    target = root / folder
    staging = ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent)
        new, old = Path(staging) / "new", Path(staging) / "old"
        if target.exists():
            shutil.copytree(target, new, symlinks=True)
        for path, data in files.items():
            write_atomic(new / Path(path).relative_to(folder), data)
        new.chmod(0o755)
        if target.exists():
            target.rename(old)
        try:
            new.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror}") from error
    finally:
        if staging:
            shutil.rmtree(staging, ignore_errors=True)
