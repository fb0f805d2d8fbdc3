"""`harnessctl validate`: check every manifest, report every fault."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json, Project


def validate(
    project: Project = None,
    json: Json = False,
    sarif: Annotated[
        Path | None, typer.Option("--sarif", help="Also write the faults to this file as SARIF 2.1.0.")
    ] = None,
) -> None:
    """Check every manifest; print every fault."""
    from harnessctl.cli import output
    from harnessctl.cli.project import project_root, validate_all

    faults = validate_all(project_root(project))
    if sarif is not None:
        import orjson

        from harnessctl.compile.sarif import to_sarif
        from harnessctl.storage import write_atomic

        write_atomic(sarif, orjson.dumps(to_sarif(sorted(faults.items)), option=orjson.OPT_INDENT_2) + b"\n")
    errors, warnings = len(faults.errors), len(faults.warnings)
    if json:
        output.json_data(
            {"errors": errors, "warnings": warnings, "faults": [f.as_dict() for f in sorted(faults.items)]}
        )
    else:
        output.faults(sorted(faults.items))
        output.talk(f"{output.plural(errors, 'error')}, {output.plural(warnings, 'warning')}")
    raise typer.Exit(1 if errors else 0)
