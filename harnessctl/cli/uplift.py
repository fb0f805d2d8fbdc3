"""`harnessctl uplift`: the relative difference of a metric per visitor in an online test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json


def uplift(
    file: Annotated[Path, typer.Argument(help="CSV or JSON Lines, a row or more for each visitor.")],
    visitor: Annotated[str, typer.Option("--visitor", help="The column with the visitor.")] = "visitor",
    metric: Annotated[
        str, typer.Option("--metric", help="The column with the number; rows of a visitor add up.")
    ] = "value",
    arm: Annotated[
        str | None,
        typer.Option(
            "--arm", help="The column with the arm; without one a hash of each visitor says it.", show_default=False
        ),
    ] = None,
    control: Annotated[str, typer.Option("--control", help="What the control is called.")] = "control",
    treatment: Annotated[str, typer.Option("--treatment", help="What the treatment is called.")] = "treatment",
    share: Annotated[
        float | None,
        typer.Option(
            "--share", min=0.0001, max=0.9999, help="Share of visitors planned for the treatment.", show_default=False
        ),
    ] = None,
    salt: Annotated[str, typer.Option("--salt", help="Of the hash: the test's name.")] = "",
    json: Json = False,
) -> None:
    """Work out the uplift per visitor with its interval, and whether the split is the planned one."""
    from harnessctl.cli import output
    from harnessctl.errors import HarnessctlError
    from harnessctl.evaluate.statistics.uplift import uplift as uplift_of
    from harnessctl.evaluate.visitor_rows import read_arms

    arms = read_arms(
        file, visitor=visitor, metric=metric, arm=arm, control=control, treatment=treatment, salt=salt, share=share
    )
    try:
        found = uplift_of(*arms, share=share)
    except ValueError as error:
        raise HarnessctlError(f"{file}: {error}") from error
    if json:
        output.json_data(found)
    else:
        rows = [
            (one.name, f"{one.visitors:,}", f"{one.total:,.6g}", f"{one.mean:.6g}")
            for one in (found.control, found.treatment)
        ]
        output.table(("arm", "visitors", metric, "per visitor"), rows)
        output.data(
            f"uplift {100 * found.uplift:+.4f}% [{100 * found.low:+.4f}%, {100 * found.high:+.4f}%], "
            f"p {'< 0.001' if found.p < 0.001 else f'= {found.p:.3f}'}"
        )
    if found.is_mismatched:
        output.talk(
            f"warning: the split is not the planned one (p = {found.split_p:.2g}): visitors are missing from an arm, and "
            "the uplift is of those who are left"
        )
