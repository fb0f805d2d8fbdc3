"""`harnessctl augment`: variants of a harness within an envelope, their records, and what they cover."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Cfg, Json, Keys, Project, RunDir


def augment(
    keys: Keys = None,
    cfg: Cfg = False,
    run_dir: RunDir = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Go on with this run; nothing is made twice.", show_default=False)
    ] = None,
    rebuild: Annotated[
        Path | None,
        typer.Option("--rebuild", help="Make one variant again, from these records.", show_default=False),
    ] = None,
    number: Annotated[
        int | None, typer.Option("--number", min=0, help="--rebuild: which variant.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="--rebuild: where to write it.", show_default=False)
    ] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Vary a harness; record every variant and count what was covered.

    The first argument without = is a harness of the project or a bundle file; the others are recipe keys. Exit 1 when a
    variant broke a law and was refused.
    """
    from harnessctl.cli import output
    from harnessctl.cli.augmenting import AugmentCommand
    from harnessctl.cli.rebuilding import rebuild_variant

    command = AugmentCommand.of(keys or [], run_dir=run_dir, resume=resume, project=project, json=json)
    if cfg:
        output.data(command.config_yaml().rstrip())
        return
    if rebuild is not None or number is not None:
        rebuilt = rebuild_variant(rebuild, number, out, target=command.target, project=project)
        if json:
            output.json_data(rebuilt)
        else:
            output.data(rebuilt.path)
        return
    ran = command.run()
    if json:
        output.json_data(ran)
    raise typer.Exit(ran.code)
