"""`harnessctl eval` and `harnessctl rescore`: suites through a policy, scored and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Cfg, Json, Project, RunDir, Sweep


def eval_(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE... [KEY=VALUE]...",
            help="Suites (live-qa, tool-robust, ...) or judge-calibration, and recipe keys; --cfg prints them all.",
            show_default=False,
        ),
    ] = None,
    cfg: Cfg = False,
    sweep: Sweep = False,
    run_dir: RunDir = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", help="Go on with this run; nothing is answered twice.", show_default=False),
    ] = None,
    retry_on_error: Annotated[
        int | None,
        typer.Option(
            "--retry-on-error",
            metavar="N",
            min=0,
            help="Ask again, up to N times at the end, what no model answered (retries=N).",
            show_default=False,
        ),
    ] = None,
    fail_on_error: Annotated[
        bool, typer.Option("--fail-on-error", help="Stop at the first item without an answer (fail_on_error=true).")
    ] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """Let a policy answer a suite's items, and score it."""
    from harnessctl.cli.commands import carry_out
    from harnessctl.cli.evaluating import EvalCommand

    flags = [] if retry_on_error is None else [f"retries={retry_on_error}"]
    flags += ["fail_on_error=true"] if fail_on_error else []
    if "judge-calibration" in (arguments or []):
        from harnessctl.cli.calibrating import CalibrateCommand

        calibrations = CalibrateCommand.of(
            arguments or [], run_dir=run_dir, resume=resume, project=project, json=json, is_sweep=sweep
        )
        return carry_out(calibrations, cfg=cfg, json=json)
    commands = EvalCommand.of(
        [*(arguments or []), *flags], run_dir=run_dir, resume=resume, project=project, json=json, is_sweep=sweep
    )
    return carry_out(commands, cfg=cfg, json=json)


def rescore(
    run: Annotated[Path, typer.Argument(help="A run folder of eval, such as runs/latest-eval.", show_default=False)],
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="judge=panel lets the panel of manifests/roles.yaml judge, workers=N at once.",
            show_default=False,
        ),
    ] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Score a run's records again, by rules or judges."""
    from harnessctl.cli import output
    from harnessctl.cli.evaluating import rescore_run, show
    from harnessctl.cli.judging import show_judging

    done = rescore_run(run, keys or [], project=project)
    if json:
        output.json_data(done)
    else:
        show(done.report)
        if done.judging is not None:
            show_judging(done.judging)
    raise typer.Exit(done.code)
