"""`harnessctl view`: a run's trajectories, as a table or one in full."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

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
    from harnessctl.records.trajectory import StopReason
    from harnessctl.trajectory import read_trajectories

    if stop is not None and stop not in get_args(StopReason):
        raise UsageError(f"no request ends {stop!r}", hint=f"allowed: {', '.join(get_args(StopReason))}")
    path = _records(run, project)
    wanted = (
        trajectory
        for trajectory in read_trajectories(path)
        if (id_ is None or trajectory.id == id_) and (stop is None or trajectory.stop == stop)
    )
    found = islice(wanted, limit)
    if id_ is not None:
        first = next(found, None)
        if first is None:
            raise UsageError(f"no request {id_!r} in {path}")
        found = chain([first], found)
    if json:
        _write_json(found)
    elif id_ is not None:
        for trajectory in found:
            output.data(transcript(trajectory))
    else:
        output.table(("id", "asked", "skills", "tools", "said", "ended"), summary_rows(found))


def _records(run: Path, project: Path | None) -> Path:
    """The trajectory file of `run`: a file, or a folder from here, or else from the project's root."""
    from harnessctl.cli.project import project_root
    from harnessctl.errors import UsageError

    tried = [run]
    if not run.is_absolute() and (project is not None or not run.exists()):
        try:
            tried.append(project_root(project) / run)
        except UsageError:
            pass  # there is no project here; what was tried is named below
    for place in tried:
        path = place / "trajectories.jsonl" if place.is_dir() else place
        if path.is_file():
            return path
    raise UsageError(f"no trajectories at {tried[0]}", hint="give a folder under runs/, or a .jsonl file")


def _write_json(found: Iterable[Trajectory]) -> None:
    """One JSON array on stdout, one trajectory in memory at a time."""
    import sys

    import msgspec

    separator = "["
    for trajectory in found:
        text = msgspec.json.format(msgspec.json.encode(trajectory), indent=2).decode()
        sys.stdout.write(f"{separator}\n{text}")
        separator = ","
    sys.stdout.write("[]\n" if separator == "[" else "\n]\n")
