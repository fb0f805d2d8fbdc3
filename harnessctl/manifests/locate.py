"""Where a project is, and which files are its sources.

A project's root is the nearest folder, from the working directory upwards, that holds `harness.lock` or a folder
`manifests` with a YAML file in it. What always holds: a source's real path lies inside the root; a symbolic link that
leaves it is a fault and is not read, and so is what is no regular file. This module reads names only, never contents,
and imports no parser.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harnessctl.errors import Fault, Faults, UsageError

#: Folders of manifests/ with a kind of their own. Any other folder there holds harnesses (`manifests/judges/live.yaml`).
FOLDER_KINDS = {"tools": "Tools", "hooks": "Hooks", "prompts": "PromptPipeline", "worlds": "World"}
#: Folders whose kinds other commands read.
OTHER_FOLDERS = frozenset({"envelopes", "mappings", "suites", "plans"})
#: A folder below manifests/worlds/ for files that a world's manifest names under `simulation.families`.
FAMILIES = "families"
LOCK_NAME = "harness.lock"
#: Which models teach and judge; other commands read it.
ROLES = "manifests/roles.yaml"
DEFAULT_HARNESS = "harness"


@dataclass(slots=True, frozen=True, order=True)
class SourceFile:
    """One source: its path from the root (with `/`), the kind its place implies, and its name within that kind.

    The name of a harness is its path under manifests/ without the ending (`harness`, `judges/live`); of a skill and of
    its examples, the folder; of any other kind, the file's stem.
    """

    path: str
    kind: str
    name: str


@dataclass(slots=True)
class Project:
    """A project's root and its sources in order of path."""

    root: Path
    sources: list[SourceFile] = field(default_factory=list)


def find_root(project: Path | None = None, *, start: Path | None = None) -> Path:
    """The absolute root of a project: `project` itself, or the nearest one from `start` (working directory) upwards.

    UsageError when there is none.
    """
    if project is not None:
        root = project.resolve()
        if not root.is_dir():
            raise UsageError(f"no folder at {project}", hint="--project names the folder that holds manifests/")
        if not (_is_root(root) or (root / "manifests").is_dir() or (root / "skills").is_dir()):
            raise UsageError(
                f"{project} is not a project: it has no manifests/ and no {LOCK_NAME}",
                hint=f"make one with `harnessctl init {project}`",
            )
        return root
    try:
        here = (start or Path.cwd()).resolve()
    except FileNotFoundError:
        raise UsageError(
            "the working directory is not there any more", hint="cd to another, or give --project"
        ) from None
    for folder in (here, *here.parents):
        if _is_root(folder):
            return folder
    raise UsageError(
        f"no project at {here} or above it",
        hint="make one with `harnessctl init`, or name one with --project DIR",
    )


def _is_root(folder: Path) -> bool:
    if (folder / LOCK_NAME).is_file():
        return True
    try:
        with os.scandir(folder / "manifests") as entries:
            return any(entry.name.endswith(".yaml") for entry in entries)
    except OSError:
        return False


def find_sources(root: Path, faults: Faults) -> Project:
    """Every source of the project, by its place alone. Adds faults for files that cannot be sources."""
    found = sorted([*_manifests(root, faults), *_skills(root, faults)], key=lambda source: source.path)
    _twins(found, faults)
    return Project(root, found)


def inside(root: Path, path: Path) -> bool:
    """Whether the real path of `path` (links followed) lies inside `root`."""
    return path.resolve().is_relative_to(root)


def look(root: Path, path: str) -> Literal["file", "folder", "other", "nothing", "outside"]:
    """What a project path leads to, links followed; `nothing` too for what no file system could hold."""
    try:
        real = (root / path).resolve()
        if not real.is_relative_to(root):
            return "outside"
        mode = real.stat().st_mode
    except (OSError, RuntimeError, ValueError):  # too long a name, links in a circle, a NUL
        return "nothing"
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def _manifests(root: Path, faults: Faults) -> Iterator[SourceFile]:
    for path in _walk(root, "manifests", faults):
        parts = path.split("/")[1:]
        if path == ROLES or (parts[0] in OTHER_FOLDERS and len(parts) > 1):
            continue
        if parts[0] == "worlds" and FAMILIES in parts[1:-1]:
            continue
        stem = "/".join(parts).removesuffix(".yaml")
        kind = FOLDER_KINDS.get(parts[0]) if len(parts) > 1 else None
        if kind is None:
            yield SourceFile(path, "Harness", stem)
        elif len(parts) == 2:
            yield SourceFile(path, kind, parts[1].removesuffix(".yaml"))
        else:
            allowed, hint = f"manifests/{parts[0]}/<name>.yaml", f"move it to manifests/{parts[0]}/"
            faults.add(_fault(path, "source-place", "the file is too deep to be found", path, allowed, hint))


def _walk(root: Path, folder: str, faults: Faults) -> Iterator[str]:
    """Paths of the .yaml files below `folder`, in no order. Hidden files and folders are passed over."""
    for path, entry in _entries(root, folder, faults):
        ending = Path(entry.name).suffix
        if entry.is_dir():
            if ending == ".yaml" and folder.count("/") < 2:
                faults.add(_fault(path, "source-place", "a folder has the name of a manifest", "a folder", "a file"))
            yield from _walk(root, path, faults)
        elif ending == ".yaml" and _is_file(path, entry, faults):
            yield path
        elif ending.lower() in (".yml", ".yaml") and ending != ".yaml":
            message = "a manifest is not read because of its ending"
            hint = f"rename it to {path.removesuffix(ending)}.yaml"
            faults.add(_fault(path, "source-place", message, ending, ".yaml", hint))
        elif folder == "manifests" and entry.name in (*FOLDER_KINDS, *OTHER_FOLDERS):
            faults.add(_fault(path, "source-place", "a file stands in the place of a folder", "a file", "a folder"))


def _skills(root: Path, faults: Faults) -> Iterator[SourceFile]:
    for path, entry in _entries(root, "skills", faults):
        if not entry.is_dir():
            continue
        before = len(faults.items)
        names = {inner.name: inner for _, inner in _entries(root, path, faults, only=("skill.md", "examples.yaml"))}
        if len(faults.items) > before and "SKILL.md" not in names:
            continue
        if "SKILL.md" not in names:
            other = next((name for name in names if name.lower() == "skill.md"), None)
            hint = f"rename {other} to SKILL.md" if other else "add it, or move the folder out of skills/"
            message = "the folder of a skill has no SKILL.md"
            faults.add(_fault(path, "skill-missing", message, other or "", "SKILL.md", hint))
            continue
        if _is_file(f"{path}/SKILL.md", names["SKILL.md"], faults):
            yield SourceFile(f"{path}/SKILL.md", "Skill", entry.name)
        examples = names.get("examples.yaml")
        if examples is not None and _is_file(f"{path}/examples.yaml", examples, faults):
            yield SourceFile(f"{path}/examples.yaml", "Examples", entry.name)


def _entries(
    root: Path, folder: str, faults: Faults, only: tuple[str, ...] = ()
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """(path, entry) of what is in a folder, hidden things aside, and links aside that lead nowhere or out; of the
    names (in lower case) in `only` where some are given. No folder has nothing in it."""
    at = root / folder
    if "/" not in folder and at.is_symlink() and not _leads_inside(root, folder, at, faults):
        return
    try:
        entries = list(os.scandir(at))
    except FileNotFoundError:
        return
    except OSError as error:
        faults.add(_fault(folder, "source-unreadable", f"the folder cannot be read: {error.strerror}"))
        return
    for entry in entries:
        path = f"{folder}/{entry.name}"
        if entry.name.startswith(".") or (only and entry.name.lower() not in only):
            continue
        if not entry.name.isprintable() and not _is_text(entry.name):
            shown = path.encode("utf-8", "backslashreplace").decode()
            faults.add(_fault(shown, "source-place", "the name is not UTF-8 text", allowed="UTF-8", hint="rename it"))
            continue
        if not entry.is_symlink() or _leads_inside(root, path, Path(entry.path), faults):
            yield path, entry


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes of another encoding, which Python keeps as surrogates
        return False
    return True


def _is_file(path: str, entry: os.DirEntry[str], faults: Faults) -> bool:
    """False, with a fault, for a folder, a pipe or a device: reading one may never end."""
    if entry.is_file():
        return True
    got = "a folder" if entry.is_dir() else "a pipe, a socket or a device"
    faults.add(_fault(path, "source-unreadable", "the file cannot be read: it is no regular file", got, "a file"))
    return False


def _leads_inside(root: Path, path: str, link: Path, faults: Faults) -> bool:
    """False, with a fault, for a symbolic link that leads out of the project or to nothing."""
    written = str(link.readlink())
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: links that lead round in a circle
        faults.add(_fault(path, "source-unreadable", "the symbolic link leads to nothing", written))
        return False
    if not target.is_relative_to(root):
        message, hint = "the symbolic link leads out of the project", "copy the file into the project"
        faults.add(_fault(path, "source-outside", message, written, "files inside the project", hint))
        return False
    if link.parent.is_relative_to(target):
        faults.add(_fault(path, "source-place", "the symbolic link leads to a folder that holds it", written))
        return False
    return True


def _twins(sources: Iterable[SourceFile], faults: Faults) -> None:
    """Paths that differ in case or in how Unicode writes them: some file systems hold only one of the two."""
    seen: dict[str, str] = {}
    for source in sources:
        path = source.path
        key = path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()
        first = seen.setdefault(key, path)
        if first != path:
            message = "two files have names that some machines cannot tell apart"
            faults.add(_fault(path, "source-twin", message, first, "names that differ in more than case", "rename one"))


def _fault(path: str, code: str, message: str, got: str = "", allowed: str = "", hint: str = "") -> Fault:
    return Fault(path, 0, 0, code, message, got, allowed, hint)
