"""Where a project is, and which files are its sources.

A project's root is the nearest folder, from the working directory upwards, that holds `harness.lock` or a folder
`manifests` with a YAML file in it. What always holds: a source's real path lies inside the root; a symbolic link that
leaves it is a fault and is not read. This module reads names only, never contents, and imports no parser.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harnessctl.errors import Fault, Faults, UsageError

#: Folders of manifests/ with a kind of their own. Any other folder there holds harnesses (`manifests/judges/live.yaml`).
FOLDER_KINDS = {"tools": "Tools", "hooks": "Hooks", "prompts": "PromptPipeline", "worlds": "World"}
#: Folders whose kinds other commands read.
OTHER_FOLDERS = frozenset({"envelopes", "suites", "plans"})
LOCK_NAME = "harness.lock"
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
    here = (start or Path.cwd()).resolve()
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
    found = sorted([*_manifests(root, faults), *_skills(root, faults)])
    return Project(root, found)


def inside(root: Path, path: Path) -> bool:
    """Whether the real path of `path` (links followed) lies inside `root`."""
    return path.resolve().is_relative_to(root)


def _manifests(root: Path, faults: Faults) -> Iterator[SourceFile]:
    for path in _walk(root, "manifests", faults):
        parts = path.split("/")[1:]
        if parts[0] in OTHER_FOLDERS and len(parts) > 1:
            continue
        stem = "/".join(parts).removesuffix(".yaml")
        kind = FOLDER_KINDS.get(parts[0]) if len(parts) > 1 else None
        if kind is None:
            yield SourceFile(path, "Harness", stem)
        elif len(parts) == 2:
            yield SourceFile(path, kind, parts[1].removesuffix(".yaml"))
        else:
            faults.add(
                Fault(
                    path,
                    0,
                    0,
                    "source-place",
                    "the file is too deep to be found",
                    path,
                    f"manifests/{parts[0]}/<name>.yaml",
                    f"move it to manifests/{parts[0]}/",
                )
            )


def _walk(root: Path, folder: str, faults: Faults) -> Iterator[str]:
    """Paths of the .yaml files below `folder`, in no order. Hidden files and folders are passed over."""
    try:
        entries = list(os.scandir(root / folder))
    except FileNotFoundError:
        return
    except OSError as error:
        faults.add(Fault(folder, 0, 0, "source-unreadable", f"the folder cannot be read: {error.strerror}"))
        return
    for entry in entries:
        path = f"{folder}/{entry.name}"
        if entry.name.startswith(".") or not _allowed(root, path, entry, faults):
            continue
        if entry.is_dir():
            yield from _walk(root, path, faults)
        elif entry.name.endswith(".yaml"):
            yield path
        elif entry.name.endswith(".yml"):
            faults.add(
                Fault(
                    path,
                    0,
                    0,
                    "source-place",
                    "a manifest is not read because of its ending",
                    ".yml",
                    ".yaml",
                    f"rename it to {path.removesuffix('.yml')}.yaml",
                )
            )


def _skills(root: Path, faults: Faults) -> Iterator[SourceFile]:
    try:
        entries = list(os.scandir(root / "skills"))
    except FileNotFoundError:
        return
    except OSError as error:
        faults.add(Fault("skills", 0, 0, "source-unreadable", f"the folder cannot be read: {error.strerror}"))
        return
    for entry in entries:
        path = f"skills/{entry.name}"
        if entry.name.startswith(".") or not _allowed(root, path, entry, faults) or not entry.is_dir():
            continue
        names = {inner.name: inner for inner in os.scandir(root / path)}
        if "SKILL.md" not in names:
            other = next((name for name in names if name.lower() == "skill.md"), None)
            faults.add(
                Fault(
                    path,
                    0,
                    0,
                    "skill-missing",
                    "the folder of a skill has no SKILL.md",
                    other or "",
                    "SKILL.md",
                    f"rename {other} to SKILL.md" if other else "add it, or move the folder out of skills/",
                )
            )
            continue
        if _allowed(root, f"{path}/SKILL.md", names["SKILL.md"], faults):
            yield SourceFile(f"{path}/SKILL.md", "Skill", entry.name)
        examples = names.get("examples.yaml")
        if examples is not None and _allowed(root, f"{path}/examples.yaml", examples, faults):
            yield SourceFile(f"{path}/examples.yaml", "Examples", entry.name)


def _allowed(root: Path, path: str, entry: os.DirEntry[str], faults: Faults) -> bool:
    """False, with a fault, for a symbolic link that leads out of the project or to nothing."""
    if not entry.is_symlink():
        return True
    written = str(Path(entry.path).readlink())
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: links that lead round in a circle
        faults.add(Fault(path, 0, 0, "source-unreadable", "the symbolic link leads to nothing", written))
        return False
    if not target.is_relative_to(root):
        hint = "copy the file into the project"
        faults.add(
            Fault(
                path,
                0,
                0,
                "source-outside",
                "the symbolic link leads out of the project",
                written,
                "files inside the project",
                hint,
            )
        )
        return False
    if Path(entry.path).parent.is_relative_to(target):
        faults.add(Fault(path, 0, 0, "source-place", "the symbolic link leads to a folder that holds it", written))
        return False
    return True
