"""`harnessctl schema`: the JSON Schema of a manifest kind or an on-disk record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json
from harnessctl.cli.options import kinds as complete


def schema(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="Skill, Tools, Harness, Trajectory, ...; none: list them.", show_default=False, autocompletion=complete
        ),
    ] = None,
    all_: Annotated[
        Path | None,
        typer.Option("--all", help="Write every schema into this folder, for an editor.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Print the JSON Schema of a kind."""
    import orjson

    from harnessctl.cli import output
    from harnessctl.manifests.schemas import kinds, schema_for
    from harnessctl.storage import write_atomic

    if all_ is not None or kind is None:
        listed = kinds() if all_ is None else [str(all_ / f"{name}.json") for name in kinds()]
        for name, path in zip(kinds(), listed, strict=True):
            if all_ is not None:
                text = orjson.dumps(schema_for(name), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
                write_atomic(Path(path), text)
        output.json_data(listed) if json else output.data("\n".join(listed))
    else:
        output.json_data(schema_for(kind))
