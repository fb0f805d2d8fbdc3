"""Finding the project and its bundles for a command."""

from __future__ import annotations

from collections.abc import Callable
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
    if spec is not None and spec.endswith(".json"):
        raise UsageError(f"no bundle at {spec}", hint="`harnessctl compile` writes them to build/")
    root = project_root(project)
    return compiled(root, spec or harness), root


def compiled(root: Path, harness: str | None) -> Bundle:
    """The bundle of one harness, compiled now (or found unchanged); made in memory where build/ cannot be written."""
    from harnessctl.bundle.files import read_bundle
    from harnessctl.cli import output
    from harnessctl.compile import compile_project
    from harnessctl.errors import StorageError

    try:
        result = compile_project(root, harness=harness, discover=discover)
    except StorageError as error:
        from harnessctl.compile.revision import compiled as compiled_in_memory

        output.talk(f"warning: {error.message}; the bundle is not kept")
        return compiled_in_memory(root, harness)
    return read_bundle(result.path(harness), verify=False)


def judge_source(bundle: Bundle, root: Path | None) -> Callable[[str], Bundle]:
    """Finds the judges that `bundle` was compiled with, by name: the project's harness as it is now, or the bundle in
    build/ where that is another one by now. HarnessctlError when there is neither."""

    def find(name: str) -> Bundle:
        from harnessctl.bundle.files import read_bundle
        from harnessctl.errors import HarnessctlError

        if root is None:
            raise HarnessctlError(f"the judge {name!r} is a harness of the project, and there is no project here")
        now = compiled(root, name)
        wanted = bundle.state.judges.get(name, now.digest)
        if now.digest == wanted:
            return now
        for path in sorted((root / "build").glob(f"{now.name}-*+{wanted[:12]}.bundle.json")):
            return read_bundle(path)
        raise HarnessctlError(
            f"the judge {name!r} is {now.digest[:12]} by now, and the bundle was compiled with {wanted[:12]}",
            hint="compile the bundle again, or put the judge's bundle back into build/",
        )

    return find


def discover(name: str, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools that an MCP server lists now; the compiler asks only for servers that are not locked yet."""
    import asyncio

    from harnessctl.runtime.tools.mcp import discover as ask

    return asyncio.run(ask(name, spec))


def validate_all(root: Path) -> Faults:
    """Every fault of the project: the manifests, the tables and queries of its worlds, its envelopes and operators, its
    roles."""
    from harnessctl.augment.envelopes import check_envelopes
    from harnessctl.compile import validate_project
    from harnessctl.compile.revision import compiled as in_memory
    from harnessctl.errors import Faults
    from harnessctl.evaluate.judging.roles import check_roles
    from harnessctl.evaluate.suite_manifests import check_suites
    from harnessctl.manifests.locate import find_sources
    from harnessctl.simulate.validating import check_world

    faults = validate_project(root)
    compiles = not faults.errors
    known = {fault.path for fault in faults.errors}
    for source in find_sources(root, Faults()).sources:
        if source.kind == "World" and source.path not in known:
            faults.extend(check_world(root / source.path, (lambda name: in_memory(root, name)) if compiles else None))
    faults.extend(check_envelopes(root).items)
    faults.extend(check_suites(root).items)
    faults.extend(check_roles(root, (lambda name: in_memory(root, name)) if compiles else None).items)
    return faults
