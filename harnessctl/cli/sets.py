"""`harnessctl sets`: sets of items that are built and checked."""

from __future__ import annotations

from typing import Annotated

import typer

from harnessctl.cli.options import Cfg, Json, Project

app = typer.Typer(help="Build sets of items, checked and frozen.", no_args_is_help=True)


@app.command()
def build(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE [KEY=VALUE]...",
            help="tool-robust, prompt-robust, edit-compliance, edit-compliance-held-out; recipe keys.",
            show_default=False,
        ),
    ] = None,
    project: Project = None,
    cfg: Cfg = False,
    json: Json = False,
) -> None:
    """Build a set's items and their card.

    Each item is checked before it is taken; what fails is counted and replaced.
    """
    from harnessctl.cli import output
    from harnessctl.cli.building import BuildCommand

    command = BuildCommand.of(arguments or [], project)
    if cfg:
        output.data(command.config_yaml().rstrip())
        return
    done = command.run(json=json)
    if json:
        output.json_data(done)
