"""Revision: the harness that a bundle file, a project folder or a git revision holds, compiled in memory.

What always holds: nothing is written to the project, its repository or its index; a revision is written out byte for
byte as git keeps it (no line ends are converted, nothing is left out of an export) and compiled from there, so that two
sides never mix their files; a fault names the side that it is of.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from harnessctl.bundle.files import Bundle, read_bundle
from harnessctl.errors import Faults, FaultsError, UsageError
from harnessctl.manifests.locate import find_sources

_GIT_SECONDS = 60
_LINK = b"120000"
GIT_PREFIX = "git:"


def load_side(spec: str, root: Path | None = None, *, harness: str | None = None) -> Bundle:
    """The bundle that `spec` names, for `diff` and the like.

    A file is read as a bundle; a folder is a project (`.` is `root`); anything else is a git revision of the repository that `root` (by
    default the working directory) lies in, and `git:NAME` is one even where a file of that name exists. `harness` names
    one of a project's harnesses, the default one otherwise. UsageError when there is nothing of that name, FaultsError
    when a project does not compile, BundleError when a file is no bundle.
    """
    path = Path(spec)
    if not spec.startswith(GIT_PREFIX):
        if path.is_file():
            return read_bundle(path)
        if path.is_dir():
            where = root if spec == "." and root is not None else path
            return compiled(where, harness, side="" if spec == "." else f"{spec.rstrip('/')}/")
    return _at_revision(spec.removeprefix(GIT_PREFIX), (root or Path.cwd()).resolve(), harness)


def compiled(root: Path, harness: str | None = None, *, side: str = "") -> Bundle:
    """The bundle of one harness of the project at `root`, made in memory; discovered tools are those of harness.lock.

    `side` stands before the paths of faults, and says in errors what the project is of.
    """
    from harnessctl.compile import passes
    from harnessctl.compile.discover import Discovered
    from harnessctl.compile.lock import read_lock
    from harnessctl.compile.shelf import Shelf

    root = root.resolve()
    shown = f"revision {side[:-1]}" if side.endswith(":") else str(root)
    faults = Faults()
    project = find_sources(root, faults)
    if not any(source.kind == "Harness" for source in project.sources):
        raise UsageError(f"no project at {shown}: it has no harness", hint="a project has manifests/harness.yaml")
    build = passes.Build(project, faults, Shelf(root), Discovered(read_lock(root, faults), None, locked=True))
    passes.run(build)
    try:
        faults.raise_if_errors()
    except FaultsError as error:
        placed = [dataclasses.replace(fault, path=f"{side}{fault.path}") for fault in error.faults]
        raise FaultsError(placed) from None
    made = [
        (target.plan, target.bundle)
        for target in build.targets
        if target.plan is not None and target.bundle is not None
    ]
    for plan, bundle in made:
        if harness in (bundle.name, plan.file.name) or (
            harness is None and (plan.file.name == "harness" or len(made) == 1)
        ):
            return msgspec.json.decode(bundle.data, type=Bundle)
    names = ", ".join(bundle.name for _, bundle in made)
    raise UsageError(f"no harness `{harness or 'harness'}` at {shown}", hint=f"harnesses there: {names}")


def _at_revision(name: str, root: Path, harness: str | None) -> Bundle:
    if name.startswith("-") or not name:
        raise UsageError(f"{name!r} is not a git revision")
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None:
        raise UsageError(
            f"no file or folder {name}, and {root} is not in a git repository",
            hint="give a bundle, a folder or a revision",
        )
    found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found is None:
        raise UsageError(
            f"no file, folder or git revision {name}",
            hint="revisions are as `git rev-parse` knows them: HEAD~1, main, v1.2",
        )
    commit = found.decode().strip()
    prefix = os.fsdecode(_git(root, "rev-parse", "--show-prefix") or b"").removesuffix("\n").rstrip("/")
    tree = _git(root, "rev-parse", "--verify", "--quiet", f"{commit}:{prefix}")
    if tree is None:
        raise UsageError(f"revision {name} has no folder {prefix}")
    with tempfile.TemporaryDirectory(prefix="harnessctl-") as folder:
        for path, mode, content in _blobs(root, tree.decode().strip()):
            if ".." in PurePosixPath(path).parts:
                raise UsageError(f"revision {name} has a path that leads out of it: {path}")
            _write(Path(folder) / path, mode, content)
        return compiled(Path(folder), harness, side=f"{name}:")


def _blobs(root: Path, tree: str) -> Iterator[tuple[str, bytes, bytes]]:
    """(path, mode, content) of every file and link of a tree; what a submodule holds is not in the repository."""
    listed = _git(root, "ls-tree", "-r", "-z", "--full-tree", tree) or b""
    entries = [entry.partition(b"\t") for entry in listed.split(b"\0") if entry]
    blobs = [(os.fsdecode(path), *head.split()) for head, _, path in entries if head.split()[1] == b"blob"]
    blobs.sort(key=lambda blob: blob[1] == _LINK)  # links last: nothing is written through one
    contents = _git(root, "cat-file", "--batch", stdin=b"".join(sha + b"\n" for _, _, _, sha in blobs)) or b""
    at = 0
    for path, mode, _, _ in blobs:
        line = contents.index(b"\n", at)
        head = contents[at:line].split()
        if len(head) != 3:
            raise UsageError(
                f"the repository does not hold {path} of that revision", hint="is the clone a shallow one?"
            )
        size = int(head[2])
        yield path, mode, contents[line + 1 : line + 1 + size]
        at = line + size + 2


def _write(path: Path, mode: bytes, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode == _LINK:
        path.symlink_to(os.fsdecode(content))
    else:
        path.write_bytes(content)


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """What git prints, or None when it says no; UsageError when there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], input=stdin, capture_output=True, timeout=_GIT_SECONDS, check=False
        )
    except FileNotFoundError:
        raise UsageError("git is not installed, and revisions need it", hint="give bundle files or folders") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"git did not answer in {_GIT_SECONDS} seconds") from None
    return done.stdout if done.returncode == 0 else None
