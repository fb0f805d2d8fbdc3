"""`harnessctl view`: a run's trajectories, as a table or one in full."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harnessctl.cli.options import Json, Project

if TYPE_CHECKING:
    from harnessctl.records.trajectory import Trajectory


def view(
    run: Annotated[Path, typer.Argument(help="A run folder or a trajectory file.")] = Path("runs/latest-run"),
    id_: Annotated[str | None, typer.Option("--id", help="One request, in full.", show_default=False)] = None,
    stop: Annotated[str | None, typer.Option("--stop", help="Only those that ended so.", show_default=False)] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="Only the first so many.", min=1)] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Read a run: asked, used, said, ended."""
    from harnessctl.cli import output
    from harnessctl.cli.transcript import summary_rows, transcript
    from harnessctl.errors import UsageError
    from harnessctl.trajectory import read_trajectories

    path = run / "trajectories.jsonl" if run.is_dir() else run
    if not path.is_file() and project is not None:
        path = project / run / "trajectories.jsonl"
    if not path.is_file():
        raise UsageError(f"no trajectories at {path}", hint="give a folder under runs/, or a .jsonl file")
    found: list[Trajectory] = []
    for trajectory in read_trajectories(path):
        if (id_ is None or trajectory.id == id_) and (stop is None or trajectory.stop == stop):
            found.append(trajectory)
            if limit is not None and len(found) >= limit:
                break
    if id_ is not None and not found:
        raise UsageError(f"no request {id_!r} in {path}")
    if json:
        output.json_data(found)
    elif id_ is not None:
        for trajectory in found:
            output.data(transcript(trajectory))
    else:
        output.table(("id", "asked", "skills", "tools", "said", "ended"), summary_rows(found))
