"""`harnessctl compare`: two runs of eval, item by item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json


def compare(
    a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A run folder of eval: what is compared with.")],
    b: Annotated[Path, typer.Argument(metavar="RUN_B", help="A run folder of the same suite.")],
    noise: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--noise", help="Two runs of one system: what they differ by is chance.", show_default=False),
    ] = None,
    across: Annotated[
        list[str] | None,
        typer.Option(
            "--across",
            help="Compare all the same where the runs differ in suite, set, template or world; may be given often.",
        ),
    ] = None,
    cluster: Annotated[
        str, typer.Option("--cluster", help="What is drawn anew: item, or family (all items of a family together).")
    ] = "item",
    resamples: Annotated[
        int, typer.Option("--resamples", min=100, max=10_000_000, help="Bootstrap resamples.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the bootstrap.")] = 0,
    json: Json = False,
) -> None:
    """Say what RUN_B does better or worse than RUN_A, with paired intervals.

    A pair is one scenario, asked the same in both runs. Runs of other sets or templates are refused unless told.
    """
    from harnessctl.cli import output
    from harnessctl.cli.comparing import compare_runs, show

    done = compare_runs(a, b, across=across or (), noise_of=noise, cluster=cluster, seed=seed, resamples=resamples)
    if json:
        output.json_data(done)
    else:
        show(done)
