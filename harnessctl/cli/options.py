"""Options that many commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Project = Annotated[
    Path | None,
    typer.Option("--project", help="Project folder; default: the nearest one above here.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Pure JSON on standard output.")]
HarnessName = Annotated[
    str | None, typer.Option("--harness", help="Only this harness of the project.", show_default=False)
]
Keys = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Recipe keys; --cfg prints them all.", show_default=False),
]
