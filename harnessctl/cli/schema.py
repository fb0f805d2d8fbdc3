"""`harnessctl schema`: the JSON Schema of a manifest kind or an on-disk record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def schema(
    kind: Annotated[
        str | None,
        typer.Argument(help="Skill, Tools, Harness, Trajectory, ...; none: list them.", show_default=False),
    ] = None,
    all_: Annotated[
        Path | None,
        typer.Option("--all", help="Write every schema into this folder, for an editor.", show_default=False),
    ] = None,
) -> None:
    """Print the JSON Schema of a kind."""
    import orjson

    from harnessctl.cli import output
    from harnessctl.manifests.schemas import kinds, schema_for
    from harnessctl.storage import write_atomic

    if all_ is not None:
        for name in kinds():
            text = orjson.dumps(schema_for(name), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
            write_atomic(all_ / f"{name}.json", text)
            output.data(str(all_ / f"{name}.json"))
    elif kind is None:
        for name in kinds():
            output.data(name)
    else:
        output.json_data(schema_for(kind))
