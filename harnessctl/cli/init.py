"""`harnessctl init`: a new project from a template."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json, templates


def init(
    directory: Annotated[Path, typer.Argument(help="Where; default: here.")] = Path(),
    template: Annotated[
        str,
        typer.Option(
            "--template",
            "-t",
            help="minimal: the smallest project; live-stream: the shipped host.",
            autocompletion=templates,
        ),
    ] = "minimal",
    json: Json = False,
) -> None:
    """Make a project that validates, compiles and runs.

    Nothing that exists in DIRECTORY is overwritten.
    """
    import shlex

    from harnessctl.cli import output
    from harnessctl.manifests.templates import copy_template

    written = copy_template(template, directory)
    if json:
        output.json_data({"project": str(directory.resolve()), "written": [str(path) for path in written]})
        return
    output.talk(f"{output.plural(len(written), 'file')} written to {directory.resolve()}")
    step = "" if directory == Path() else f"cd {shlex.quote(str(directory))} && "
    output.talk(f"next: {step}harnessctl validate && harnessctl compile && harnessctl docs quickstart")
