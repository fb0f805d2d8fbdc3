"""`harnessctl doctor`: what this machine and this project have, and what is missing."""

from __future__ import annotations

import typer

from harnessctl.cli.options import Json, Project


def doctor(project: Project = None, json: Json = False) -> None:
    """Check Python, packages, models and project.

    Exit 1 when something needed is missing.
    """
    from harnessctl.cli import output
    from harnessctl.cli.diagnosis import diagnose

    checks = diagnose(project)
    if json:
        output.json_data(checks)
    else:
        output.table(("check", "state", "what"), [(c.name, c.state, c.detail) for c in checks])
    raise typer.Exit(1 if any(c.state == "missing" for c in checks) else 0)
