"""`harnessctl run`: let a harness answer comments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Cfg, Json, Keys, Project, RunDir, Sweep


def run(
    keys: Keys = None,
    input_: Annotated[
        str | None,
        typer.Option("--input", "-i", help="JSON Lines of comments, or - for standard input.", show_default=False),
    ] = None,
    cfg: Cfg = False,
    sweep: Sweep = False,
    run_dir: RunDir = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", help="Go on with this run; nothing is answered twice.", show_default=False),
    ] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Answer comments; record every trajectory.

    The first argument without = is a harness of the project or a bundle file; the others are recipe keys.
    """
    from harnessctl.cli import output
    from harnessctl.cli.running import RunCommand
    from harnessctl.errors import UsageError

    command = RunCommand.of(keys or [], input_, run_dir=run_dir, resume=resume, project=project, json=json)
    if cfg:
        output.data(command.config_yaml().rstrip())
        return
    if not sweep:
        ran = command.run()
        if json:
            output.json_data(ran)
        raise typer.Exit(ran.code)
    if resume is not None or run_dir is not None:
        raise UsageError("-m makes a folder for each combination; leave --resume and --run-dir out")
    from harnessctl.recipes import expand

    done = []
    for overrides in expand(command.overrides):
        output.talk("run " + " ".join(overrides))
        done.append(command.with_overrides(overrides).run())
        if done[-1].code:
            break
    if json:
        output.json_data(done)
    raise typer.Exit(done[-1].code if done else 0)
