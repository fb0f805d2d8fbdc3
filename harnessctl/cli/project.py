"""Finding the project and its bundles for a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnessctl.bundle.files import Bundle
    from harnessctl.errors import Faults


def project_root(project: Path | None) -> Path:
    """The project's root: `--project`, or the nearest folder above here that holds one."""
    from harnessctl.manifests.locate import find_root

    return find_root(project)


def open_bundle(spec: str | None, project: Path | None, *, harness: str | None = None) -> tuple[Bundle, Path | None]:
    """The bundle that `spec` names, and its project's root where there is one.

    `spec` is a bundle file, or null or a harness name: then the project is compiled first, so that what runs is what
    the sources say.
    """
    from harnessctl.bundle.files import read_bundle
    from harnessctl.errors import UsageError

    if spec is not None and Path(spec).is_file():
        path = Path(spec)
        try:
            root: Path | None = project_root(project or path.resolve().parent)
        except UsageError:
            root = None
        return read_bundle(path), root
    if spec is not None and (spec.endswith(".json") or "/" in spec):
        raise UsageError(f"no bundle at {spec}", hint="`harnessctl compile` writes them to build/")
    root = project_root(project)
    return compiled(root, spec or harness), root


def compiled(root: Path, harness: str | None) -> Bundle:
    """The bundle of one harness, compiled now (or found unchanged)."""
    from harnessctl.bundle.files import read_bundle
    from harnessctl.compile import compile_project

    result = compile_project(root, harness=harness, discover=discover)
    return read_bundle(result.path(harness), verify=False)


def discover(name: str, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools that an MCP server lists now; the compiler asks only for servers that are not locked yet."""
    import asyncio

    from harnessctl.runtime.tools.mcp import discover as ask

    return asyncio.run(ask(name, spec))


def validate_all(root: Path) -> Faults:
    """Every fault of the project: the manifests, and the tables and queries of its worlds."""
    from harnessctl.compile import validate_project
    from harnessctl.simulate.world import check_world

    faults = validate_project(root)
    known = {fault.path for fault in faults.errors}
    for manifest in sorted((root / "manifests" / "worlds").glob("*.yaml")):
        if manifest.relative_to(root).as_posix() not in known:
            faults.extend(check_world(manifest))
    return faults
