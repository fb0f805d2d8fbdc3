"""`harnessctl schema`: the JSON Schema of a manifest kind or an on-disk record."""

from __future__ import annotations

from typing import Annotated, Optional

import typer


def schema(
    kind: Annotated[
        Optional[str], typer.Argument(help="Skill, Tools, Harness, Trajectory, ...; none: list them.")
    ] = None,
) -> None:
    """Print the JSON Schema of KIND, or the kinds there are."""
    from harnessctl.cli import output
    from harnessctl.manifests.schemas import kinds, schema_for

    if kind is None:
        for name in kinds():
            output.data(name)
    else:
        output.json_data(schema_for(kind))
