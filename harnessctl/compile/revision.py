"""Revision: the harness that a bundle file, a project folder or a git revision holds, compiled in memory.

What always holds: nothing is written to the project, its repository or its index; a revision is exported as git has it
and compiled from there, so that two sides never mix their files.
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

import msgspec

from harnessctl.bundle.files import Bundle, read_bundle
from harnessctl.errors import Faults, UsageError
from harnessctl.manifests.locate import find_sources

_GIT_SECONDS = 60
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
            return compiled(root if spec == "." and root is not None else path, harness)
    return _at_revision(spec.removeprefix(GIT_PREFIX), (root or Path.cwd()).resolve(), harness)


def compiled(root: Path, harness: str | None = None) -> Bundle:
    """The bundle of one harness of the project at `root`, made in memory; discovered tools are those of harness.lock."""
    from harnessctl.compile import passes
    from harnessctl.compile.discover import Discovered
    from harnessctl.compile.lock import read_lock
    from harnessctl.compile.shelf import Shelf

    root = root.resolve()
    faults = Faults()
    project = find_sources(root, faults)
    if not any(source.kind == "Harness" for source in project.sources):
        raise UsageError(f"no project at {root}: it has no harness", hint="a project has manifests/harness.yaml")
    build = passes.Build(project, faults, Shelf(root), Discovered(read_lock(root, faults), None, locked=True))
    passes.run(build)
    faults.raise_if_errors()
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
    raise UsageError(f"no harness `{harness or 'harness'}` at {root}", hint=f"harnesses there: {names}")


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
    prefix = (_git(root, "rev-parse", "--show-prefix") or b"").decode().strip().rstrip("/")
    archive = _git(
        Path(top.decode().rstrip("\n")), "archive", "--format=tar", f"{commit}:{prefix}" if prefix else commit
    )
    if archive is None:
        raise UsageError(f"revision {name} has no folder {prefix or '.'}")
    with tempfile.TemporaryDirectory(prefix="harnessctl-") as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        return compiled(Path(folder), harness)


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git prints, or None when it says no; UsageError when there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, timeout=_GIT_SECONDS, check=False
        )
    except FileNotFoundError:
        raise UsageError("git is not installed, and revisions need it", hint="give bundle files or folders") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"git did not answer in {_GIT_SECONDS} seconds") from None
    return done.stdout if done.returncode == 0 else None
