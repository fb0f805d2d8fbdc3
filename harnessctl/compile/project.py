"""Compile a project: every harness to a bundle in build/, harness.lock beside the sources.

`compile_project` first asks whether the last answer still holds (`fresh`), which loads no parser; only then does it
import and run the passes. What always holds: nothing is written when anything is wrong; bundles are written before the
lock that names them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harnessctl.compile import fresh
from harnessctl.errors import Fault, Faults, UsageError
from harnessctl.manifests.locate import DEFAULT_HARNESS, LOCK_NAME, find_sources

if TYPE_CHECKING:
    from harnessctl.compile.passes import Build

BUILD = "build"


@dataclass(slots=True, frozen=True)
class CompiledBundle:
    """One bundle on disk. `harness` is the harness's name, `file` its path under manifests/ without the ending."""

    harness: str
    file: str
    version: str
    digest: str
    path: Path
    unchanged: bool


@dataclass(slots=True)
class CompileResult:
    """What a compile left: bundles (the default harness first), warnings, and (what, before, after) changed in the lock.

    `fresh` is true when nothing had to be read.
    """

    bundles: list[CompiledBundle]
    warnings: list[Fault] = field(default_factory=list)
    lock_changes: list[tuple[str, str, str]] = field(default_factory=list)
    fresh: bool = False

    def bundle(self, harness: str | None = None) -> CompiledBundle:
        """The bundle of a harness by name or file, of the default one for None; UsageError when there is none."""
        return _pick(self.bundles, harness)

    def path(self, harness: str | None = None) -> Path:
        """Where the bundle of a harness is."""
        return self.bundle(harness).path


def compile_project(
    root: Path,
    *,
    harness: str | None = None,
    locked: bool = False,
    discover: Callable[[str, dict[str, Any]], list[dict[str, Any]]] | None = None,
) -> CompileResult:
    """Compile every harness of the project at `root`; the result shows all of them, or the one that `harness` names.

    FaultsError holds every fault of the whole project; UsageError, before anything is written, says that there is no
    harness of that name. With `locked` a compile that would change harness.lock is such a
    fault, and the lock is not written. `discover` asks an MCP server for its tools ((name, spec) to [{name, description,
    inputSchema}]) where they are not locked yet.
    """
    root = root.resolve()
    index = fresh.read_index(root)
    if index is not None:
        bundles = [_unchanged(root, entry) for entry in index["bundles"]]
        result = CompileResult(bundles, [Fault(**fault) for fault in index["warnings"]], fresh=True)
    else:
        result = _compile(root, harness, locked, discover)
    if harness is not None:
        result.bundles = [_pick(result.bundles, harness)]
    return result


def validate_project(root: Path) -> Faults:
    """Every fault and warning of the project; writes nothing but the cache, asks no server."""
    root = root.resolve()
    index = fresh.read_index(root)
    if index is not None:
        return Faults([Fault(**fault) for fault in index["warnings"]])
    build = _run(root, True, None)
    return build.faults


def _pick(bundles: list[CompiledBundle], harness: str | None) -> CompiledBundle:
    wanted = harness if harness is not None else DEFAULT_HARNESS
    for bundle in bundles:
        if wanted in (bundle.harness, bundle.file):
            return bundle
    if harness is None and len(bundles) == 1:
        return bundles[0]
    names = ", ".join(bundle.harness for bundle in bundles)
    raise UsageError(
        f"no harness `{harness}`" if harness is not None else "the project has no default harness",
        hint=f"harnesses: {names}" if names else "add manifests/harness.yaml",
    )


def _unchanged(root: Path, entry: dict[str, str]) -> CompiledBundle:
    path = root / entry["path"]
    return CompiledBundle(entry["harness"], entry["file"], entry["version"], entry["digest"], path, unchanged=True)


def _run(root: Path, locked: bool, discover: Any) -> Build:
    from harnessctl.compile import passes
    from harnessctl.compile.discover import Discovered
    from harnessctl.compile.lock import read_lock
    from harnessctl.compile.shelf import Shelf

    faults = Faults()
    project = find_sources(root, faults)
    if not any(file.kind == "Harness" for file in project.sources):
        faults.add(
            Fault(
                "manifests",
                0,
                0,
                "harness-missing",
                "the project has no harness",
                allowed="manifests/harness.yaml",
                hint="`harnessctl init` makes a project with one",
            )
        )
    lock = read_lock(root, faults)
    build = passes.Build(project, faults, Shelf(root), Discovered(lock, discover, locked=locked))
    passes.run(build)
    build.shelf.keep(build.units)
    return build


def _compile(root: Path, harness: str | None, locked: bool, discover: Any) -> CompileResult:
    from harnessctl.compile import lock as locks
    from harnessctl.compile.passes import all_sources
    from harnessctl.storage import digest_bytes, read_bytes, write_atomic

    started_ns = time.time_ns()
    build = _run(root, locked, discover)
    build.faults.raise_if_errors()
    warnings = build.faults.warnings
    sources = all_sources(build)
    made = [(t.plan, t.bundle) for t in build.targets if t.plan is not None and t.bundle is not None]
    old = locks.read_lock(root, Faults())
    new = locks.make_lock(
        sources, {b.name: {"version": b.version, "digest": b.digest} for _, b in made}, build.discovered.locked
    )
    if locked:
        held = Faults([*locks.locked_faults(old, new)])
        held.raise_if_errors()
    bundles: list[CompiledBundle] = []
    for plan, bundle in made:
        path = root / BUILD / bundle.file_name
        unchanged = _has(path, bundle.data)
        bundles.append(CompiledBundle(bundle.name, plan.file.name, bundle.version, bundle.digest, path, unchanged))
    if harness is not None:
        _pick(bundles, harness)
    _clear_strays(root)
    for (_, bundle), compiled in zip(made, bundles, strict=True):
        if not compiled.unchanged:
            write_atomic(compiled.path, bundle.data)
    written = {f"{BUILD}/{bundle.file_name}": digest_bytes(bundle.data) for _, bundle in made}
    lock_data = locks.encode_lock(new)
    if locked:
        lock_data = read_bytes(root / LOCK_NAME)  # it says the same, perhaps with other line ends
    elif not _has(root / LOCK_NAME, lock_data):
        write_atomic(root / LOCK_NAME, lock_data)
    written[LOCK_NAME] = digest_bytes(lock_data)
    _remember(root, build, written, bundles, warnings, started_ns)
    return CompileResult(bundles, warnings, list(locks.changes(old, new)))


def _has(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _clear_strays(root: Path) -> None:
    """Remove what a compile that was killed while it wrote has left, an hour after."""
    for path in (*root.glob(f".{LOCK_NAME}.*"), *(root / BUILD).glob(".*.bundle.json.*")):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - 3600:
                path.unlink()


def _remember(
    root: Path,
    build: Build,
    written: dict[str, str],
    bundles: list[CompiledBundle],
    warnings: list[Fault],
    started_ns: int,
) -> None:
    """Write the index from which the next compile may answer."""
    if any(fault.code == "command-not-found" for fault in warnings):
        return  # another machine, another PATH
    digests = {unit.file.path: unit.digest for unit in build.units} | written
    exists: dict[str, bool] = {}
    for bound in (item for target in build.targets for item in target.all_bound):
        exists |= {path: digest == "" for path, digest in bound.depends.items() if not digest}
        digests |= {path: digest for path, digest in bound.depends.items() if digest}
    files = {path: fresh.stat_of(root / path, digest) for path, digest in digests.items()}
    if None in files.values():
        return
    fresh.write_index(
        root,
        {
            "key": fresh.compiler_key(),
            "sources": [file.path for file in build.project.sources],
            "files": files,
            "exists": dict(sorted(exists.items())),
            "bundles": [
                {
                    "harness": b.harness,
                    "file": b.file,
                    "version": b.version,
                    "digest": b.digest,
                    "path": b.path.relative_to(root).as_posix(),
                }
                for b in bundles
            ],
            "warnings": [fault.as_dict() for fault in warnings],
        },
        started_ns,
    )
