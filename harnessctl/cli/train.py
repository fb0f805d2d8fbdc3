"""`harnessctl train`: one stage of training a policy, from its recipe to a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json, Keys, Project, stages


def train(
    stage: Annotated[
        str,
        typer.Argument(
            metavar="STAGE", help="base, sft, opd, rl or mtp-adapt.", show_default=False, autocompletion=stages
        ),
    ],
    keys: Keys = None,
    cfg: Annotated[bool, typer.Option("--cfg", help="Print the resolved recipe and stop.")] = False,
    sweep: Annotated[bool, typer.Option("-m", help="Run every combination of comma-separated values.")] = False,
    run_dir: Annotated[
        Path | None, typer.Option("--run-dir", help="Where the run is kept; default: runs/.", show_default=False)
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", help="Go on with this run, as if it had not been broken off.", show_default=False),
    ] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Train a policy: base, sft, opd, rl, then mtp-adapt."""
    from harnessctl.cli import output
    from harnessctl.cli.training import TrainCommand

    commands = TrainCommand.of(
        stage, keys or [], run_dir=run_dir, resume=resume, project=project, json=json, is_sweep=sweep
    )
    if cfg:
        output.data("\n".join(command.config_yaml().rstrip() for command in commands))
        return
    for command in commands:
        _ = command.config  # a wrong key of the last run is said before the first begins
    done = []
    for command in commands:
        done.append(command.run())
        if done[-1].code:
            break
    if json:
        output.json_data(done if len(commands) > 1 else done[0])
    raise typer.Exit(done[-1].code)
