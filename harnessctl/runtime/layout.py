"""Layout: the files that a bundle carries for its command hooks, laid out in a private folder named by their digest.

What always holds: the folder is ours alone (mode 0700, in a folder of ours under the temporary one), and its files are
those of the bundle, byte for byte, when a command starts. Equal files share a folder across processes; two versions of
a bundle have two. A file that begins with `#!` is executable.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from harnessctl.errors import HookError
from harnessctl.storage import digest


class Layout:
    """The folder for `files` ({project path: text}); nothing is written before the first `folder()`."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._seen: dict[str, tuple[int, int, int]] = {}
        self._folder: Path | None = None
        self._lock = threading.Lock()

    def folder(self) -> Path:
        """The folder, made or verified; HookError when it cannot be trusted or written. Any thread may ask."""
        try:
            with self._lock:
                if self._folder is None:
                    self._folder = self._root() / digest(dict(self._files))[:32]
                _private(self._folder)
                for name, text in self._files.items():
                    self._verify(name, text)
        except OSError as error:
            raise HookError(f"cannot lay out the hook's files: {error}") from error
        return self._folder

    def _root(self) -> Path:
        root = Path(tempfile.gettempdir()) / f"harnessctl-{os.getuid()}"
        _private(root)
        return root

    def _verify(self, name: str, text: str) -> None:
        """See that the file is there as the bundle has it; only a file that looks changed is read."""
        assert self._folder is not None
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts:
            raise HookError(f"the bundle's file {name!r} would lie outside its folder")
        path = self._folder / pure
        data, mode = text.encode(), 0o700 if text.startswith("#!") else 0o600
        try:
            found = path.lstat()
            if self._seen.get(name) == _signature(found):
                return
            if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == mode and path.read_bytes() == data:
                self._seen[name] = _signature(found)
                return
            if not stat.S_ISREG(found.st_mode):
                _remove(path)
        except FileNotFoundError:
            pass
        _write(path, data, mode)
        self._seen[name] = _signature(path.lstat())


def _write(path: Path, data: bytes, mode: int) -> None:
    """Put the file in place with its mode at one go, since another process may be about to run it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _signature(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _private(folder: Path) -> None:
    """Make `folder`, or see that it is a real folder that only we can enter."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise HookError(f"{folder} is not a private folder of this user", hint="remove it, or set TMPDIR")
