"""`harnessctl world`: the tables of a world, the scenarios drawn from them, logs as scenarios, and its tools as a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import HarnessName, Json, Project

app = typer.Typer(help="Build, sample, check and serve a world; import logs.", no_args_is_help=True)

Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME] [KEY=VALUE]...", help="A world of the project; recipe keys.", show_default=False),
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write here instead of to stdout.", show_default=False)]
Cfg = Annotated[bool, typer.Option("--cfg", help="Print the resolved recipe and stop.")]


@app.command()
def build(arguments: Arguments = None, project: Project = None, cfg: Cfg = False, json: Json = False) -> None:
    """Build a world's database; show what is in it."""
    from harnessctl.cli import output
    from harnessctl.cli.simulating import WorldCommand

    command = WorldCommand.of(arguments or [], project)
    if cfg:
        output.data(command.config_yaml().rstrip())
        return
    built = command.build()
    if json:
        output.json_data(built)
    else:
        built.show()


@app.command()
def sample(
    arguments: Arguments = None, out: Out = None, project: Project = None, cfg: Cfg = False, json: Json = False
) -> None:
    """Draw scenarios, one a line. Equal seeds give equal scenarios."""
    from harnessctl.cli import output
    from harnessctl.cli.simulating import WorldCommand

    command = WorldCommand.of(arguments or [], project)
    if cfg:
        output.data(command.config_yaml().rstrip())
        return
    drawn = command.sample(out)
    if json and out is not None:
        output.json_data(drawn)


@app.command()
def check(
    arguments: Arguments = None,
    scenarios: Annotated[
        Path | None, typer.Option("--scenarios", help="Check these scenarios instead.", show_default=False)
    ] = None,
    project: Project = None,
    cfg: Cfg = False,
    json: Json = False,
) -> None:
    """List scenarios that the oracle cannot complete.

    Each with the reason; exit 1 when there are any.
    """
    from harnessctl.cli import output
    from harnessctl.cli.simulating import WorldCommand

    command = WorldCommand.of(arguments or [], project)
    if cfg:
        output.data(command.config_yaml().rstrip())
        return
    checked = command.check(scenarios)
    if json:
        output.json_data(checked)
    else:
        checked.show()
    raise typer.Exit(checked.code)


@app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(help="Trajectories, a run's folder, or any log.", show_default=False)],
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Recipe keys.", show_default=False)
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option("--mapping", help="How the log's fields are read.", show_default=False)
    ] = None,
    harness: HarnessName = None,
    out: Out = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Turn a production log into scenarios that await gold."""
    from harnessctl.cli import output
    from harnessctl.cli.simulating import WorldCommand

    overrides = [*(keys or []), *([f"harness={harness}"] if harness else [])]
    imported = WorldCommand.of(overrides, project).import_(path, mapping, out, json=json)
    if json:
        output.json_data(imported)
    else:
        output.talk(imported.report.render())
    raise typer.Exit(imported.code)


@app.command("serve-mcp")
def serve_mcp(
    arguments: Arguments = None,
    room: Annotated[str | None, typer.Option("--room", help="The room that tools run in.", show_default=False)] = None,
    viewer: Annotated[
        str | None, typer.Option("--viewer", help="The viewer that tools run for.", show_default=False)
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", "-c", help="More context, as a JSON object.", show_default=False)
    ] = None,
    http: Annotated[
        int | None,
        typer.Option("--http", min=0, max=65535, help="Serve HTTP on this port; 0: a free one.", show_default=False),
    ] = None,
    token_env: Annotated[
        str, typer.Option("--token-env", help="HTTP: the environment variable that holds the bearer token.")
    ] = "HARNESSCTL_MCP_TOKEN",
    project: Project = None,
) -> None:
    """Serve a harness's tools as an MCP server.

    Over its world, on stdio, or HTTP on this machine alone.
    """
    from harnessctl.cli.rendering import context_of
    from harnessctl.cli.simulating import WorldCommand

    command = WorldCommand.of(arguments or [], project)
    command.serve_mcp(context_of(context), room=room, viewer=viewer, http=http, token_env=token_env)
