"""`harnessctl import`: other people's skills, hooks and MCP captures into this project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harnessctl.cli.options import Json, Project

if TYPE_CHECKING:
    from harnessctl.importing.report import ImportReport

app = typer.Typer(help="Import skills, hooks or MCP captures.", no_args_is_help=True)

Source = Annotated[Path, typer.Argument(help="A file or a folder.", exists=True, show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Report only; write nothing.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


@app.command()
def skills(
    path: Source, project: Project = None, dry_run: DryRun = False, force: Force = False, json: Json = False
) -> None:
    """Import SKILL.md files, alone or in folders."""
    from harnessctl.cli.project import project_root
    from harnessctl.importing import import_skills

    _finish(import_skills(path, project_root(project), dry_run=dry_run, force=force), json=json)


@app.command()
def hooks(
    path: Source, project: Project = None, dry_run: DryRun = False, force: Force = False, json: Json = False
) -> None:
    """Import the hook manifests of coding agents as command hooks."""
    from harnessctl.cli.project import project_root
    from harnessctl.importing import import_hooks

    _finish(import_hooks(path, project_root(project), dry_run=dry_run, force=force), json=json)


@app.command()
def mcp(
    path: Source, project: Project = None, dry_run: DryRun = False, force: Force = False, json: Json = False
) -> None:
    """Import tools/list captures and `.mcp.json` server maps."""
    from harnessctl.cli.project import project_root
    from harnessctl.importing import import_mcp

    _finish(import_mcp(path, project_root(project), dry_run=dry_run, force=force), json=json)


def _finish(report: ImportReport, *, json: bool) -> None:
    from harnessctl.cli import output
    from harnessctl.cli.transcript import printable

    if json:
        output.json_data(report)
    else:
        output.data(printable(report.render()))
    raise typer.Exit(0 if report.imported and not report.refused else 1)
