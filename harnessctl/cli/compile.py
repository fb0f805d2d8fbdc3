"""`harnessctl compile`: sources to bundles and harness.lock."""

from __future__ import annotations

from typing import Annotated

import typer

from harnessctl.cli.options import HarnessName, Json, Project


def compile_(
    project: Project = None,
    harness: HarnessName = None,
    locked: Annotated[
        bool, typer.Option("--locked", help="Change nothing: fail when harness.lock would change.")
    ] = False,
    json: Json = False,
) -> None:
    """Compile harnesses into build/ and harness.lock."""
    from harnessctl.cli import output
    from harnessctl.cli.project import discover, project_root
    from harnessctl.compile import compile_project

    result = compile_project(project_root(project), harness=harness, locked=locked, discover=discover)
    if json:
        output.json_data(
            {
                "bundles": [
                    {"harness": b.harness, "path": str(b.path), "digest": b.digest, "unchanged": b.unchanged}
                    for b in result.bundles
                ],
                "warnings": [f.as_dict() for f in result.warnings],
            }
        )
        return
    output.faults(result.warnings)
    for bundle in result.bundles:
        output.data(f"{bundle.path}{'  (unchanged)' if bundle.unchanged else ''}")
