"""Rollouts: where the sequences that a draft head learns from are found."""

from __future__ import annotations

from pathlib import Path

from harnessctl.errors import UsageError

ROLLOUTS, TRAJECTORIES = "rollouts.jsonl", "trajectories.jsonl"


def find_rollouts(root: Path, named: str | None, start: Path) -> list[Path]:
    """The files of trajectories that `named` means: a file, or those of a run's folder. Null: those of the run that made
    the checkpoint `start`, whose rollouts are its policy's own; none where it kept none. UsageError when `named` is
    nothing of the kind."""
    if named is None:
        return _in(start.parent)
    path = Path(named).expanduser()
    path = path if path.is_absolute() or path.exists() else root / path
    if path.is_file():
        return [path]
    if found := _in(path):
        return found
    raise UsageError(
        f"rollouts={named}: no such file, and no folder with {ROLLOUTS} or {TRAJECTORIES}",
        hint="give a run of rl or eval: rollouts=runs/latest-rl",
    )


def _in(folder: Path) -> list[Path]:
    """A run's files: rl has one for each process."""
    if (folder / ROLLOUTS).is_file():
        return [folder / ROLLOUTS, *sorted(folder.glob("rollouts-*.jsonl"))]
    return [folder / TRAJECTORIES] if (folder / TRAJECTORIES).is_file() else []
