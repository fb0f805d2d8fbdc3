"""`harnessctl diff`: what changed between two harness states, in the terms of the harness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import HarnessName, Json, Project


def diff(
    a: Annotated[str, typer.Argument(help="A bundle, a project folder or a git revision.", show_default=False)],
    b: Annotated[
        str | None, typer.Argument(help="The other one; default: the project as it is now.", show_default=False)
    ] = None,
    harness: HarnessName = None,
    project: Project = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 when there is a difference.")] = False,
    json: Json = False,
) -> None:
    """Say what changed between two harness states.

    A and B are bundles, project folders or git revisions. Rules, tools, hooks, blocks, limits and prompt tokens are
    compared, not lines.
    """
    from harnessctl.cli import output
    from harnessctl.cli.project import project_root
    from harnessctl.compile.diff import diff_bundles, render_changes
    from harnessctl.compile.revision import load_side
    from harnessctl.errors import UsageError

    try:
        root = project_root(project)
    except UsageError:  # a revision is of the project that it is compared with
        root = next((Path(side) for side in (a, b) if side is not None and Path(side).is_dir()), None)
    changes = diff_bundles(load_side(a, root, harness=harness), load_side(b or ".", root, harness=harness))
    if json:
        output.json_data(changes)
    elif changes:
        output.data(render_changes(changes))
    else:
        output.talk("no difference")
    raise typer.Exit(1 if changes and exit_code else 0)
