"""`harnessctl train`: one stage of training a policy, from its recipe to a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Cfg, Json, Keys, Project, RunDir, Sweep, stages


def train(
    stage: Annotated[
        str,
        typer.Argument(
            metavar="STAGE", help="base, sft, opd, rl or mtp-adapt.", show_default=False, autocompletion=stages
        ),
    ],
    keys: Keys = None,
    cfg: Cfg = False,
    sweep: Sweep = False,
    run_dir: RunDir = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", help="Go on with this run, as if it had not been broken off.", show_default=False),
    ] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Train a policy: base, sft, opd, rl, then mtp-adapt."""
    from harnessctl.cli.commands import carry_out
    from harnessctl.cli.training import TrainCommand

    commands = TrainCommand.of(
        stage, keys or [], run_dir=run_dir, resume=resume, project=project, json=json, is_sweep=sweep
    )
    carry_out(commands, cfg=cfg, json=json)
