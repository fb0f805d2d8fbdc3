"""`harnessctl eval` and `harnessctl rescore`: suites through a policy, scored and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json, Project


def eval_(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE... [KEY=VALUE]...",
            help="Suites (live-qa, variant-qa), and recipe keys; --cfg prints them all.",
            show_default=False,
        ),
    ] = None,
    cfg: Annotated[bool, typer.Option("--cfg", help="Print the resolved recipe and stop.")] = False,
    sweep: Annotated[bool, typer.Option("-m", help="Run every combination of comma-separated values.")] = False,
    run_dir: Annotated[
        Path | None, typer.Option("--run-dir", help="Where the run is kept; default: runs/.", show_default=False)
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", help="Go on with this run; nothing is answered twice.", show_default=False),
    ] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Let a policy answer a suite's items, and score it."""
    from harnessctl.cli import output
    from harnessctl.cli.evaluating import EvalCommand

    commands = EvalCommand.of(
        arguments or [], run_dir=run_dir, resume=resume, project=project, json=json, is_sweep=sweep
    )
    if cfg:
        output.data("\n".join(command.config_yaml().rstrip() for command in commands))
        return
    for command in commands:
        command.config()  # a wrong key of the last run is said before the first begins
    done = []
    for command in commands:
        done.append(command.run())
        if done[-1].code:
            break
    if json:
        output.json_data(done if len(commands) > 1 else done[0])
    raise typer.Exit(done[-1].code)


def rescore(
    run: Annotated[Path, typer.Argument(help="A run folder of eval, such as runs/latest-eval.", show_default=False)],
    json: Json = False,
) -> None:
    """Score a run's records again; nothing is answered."""
    from harnessctl.cli import output
    from harnessctl.cli.evaluating import rescore_run, show

    done = rescore_run(run)
    if json:
        output.json_data(done)
    else:
        show(done.report)
