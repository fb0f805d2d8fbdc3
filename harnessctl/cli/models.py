"""`harnessctl models`: the small models that run on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from harnessctl.cli.options import Json

app = typer.Typer(help="Pull and list local models.", no_args_is_help=True)


@app.command("list")
def list_(json: Json = False) -> None:
    """List the models that can be pulled, and those that are there."""
    from harnessctl.cli import output
    from harnessctl.decode.registry import list_models

    found = list_models()
    if json:
        output.json_data(found)
        return
    rows = [
        (m.name, m.state, f"{m.size_bytes / 1e6:.0f} MB" if m.size_bytes else "-", m.licence, str(m.path or "-"))
        for m in found
    ]
    output.table(("model", "state", "size", "licence", "path"), rows)


@app.command("pull")
def pull(name: Annotated[str, typer.Argument(help="smol", show_default=False)], json: Json = False) -> None:
    """Fetch a model once and convert it for this machine."""
    from harnessctl.cli import output
    from harnessctl.decode.registry import pull as fetch

    model = fetch(name, progress=output.talk)
    if json:
        output.json_data(model)
    else:
        output.data(str(model.path))
