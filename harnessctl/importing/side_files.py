"""Side files: what lies beside a SKILL.md (scripts/, references/, assets/ and others) and comes with it.

What always holds: only regular files from inside the skill's own folder are taken, never through a link; sizes are
bounded; everything that is left behind is a note.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harnessctl.importing.report import Entry
from harnessctl.storage import read_bytes

MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 16_000_000
MAX_FILES = 500


def side_files(folder: Path, files: Iterable[Path], entry: Entry) -> dict[str, bytes]:
    """{path from the skill's folder: bytes} of the files that are copied."""
    out: dict[str, bytes] = {}
    total = 0
    for path in files:
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            entry.note("not carried over", 0, f"{name}: a symbolic link, which is not followed")
        elif not path.is_file():
            entry.note("not carried over", 0, f"{name}: a pipe, a socket or a device")
        elif any(part.startswith(".") for part in Path(name).parts):
            entry.note("not carried over", 0, f"{name}: a hidden file")
        elif name == "examples.yaml":
            entry.note("not carried over", 0, f"{name}: the project reads a file of this name as the skill's examples")
        elif len(out) >= MAX_FILES:
            entry.note("not carried over", 0, f"{name}: more than {MAX_FILES} files")
        elif (size := path.stat().st_size) > MAX_FILE_BYTES or total + size > MAX_TOTAL_BYTES:
            entry.note(
                "not carried over",
                0,
                f"{name}: {size} bytes; allowed {MAX_FILE_BYTES} a file, {MAX_TOTAL_BYTES} together",
            )
        else:
            out[name] = read_bytes(path)
            total += size
    if out:
        files_text = "1 side file was" if len(out) == 1 else f"{len(out)} side files were"
        entry.note("warning", 0, f"{files_text} copied; the model cannot open them unless a tool does it")
    return out
