"""Options that many commands share, declared once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def harnesses(incomplete: str) -> list[str]:
    """Completion: the harnesses that harness.lock of the project here names."""
    from harnessctl.compile.lock import read_lock
    from harnessctl.errors import Faults, UsageError
    from harnessctl.manifests.locate import find_root

    try:
        lock = read_lock(find_root(), Faults())
    except UsageError:
        return []
    return _beginning((lock or {}).get("bundles", {}), incomplete)


def templates(incomplete: str) -> list[str]:
    """Completion: the templates of `init`."""
    from harnessctl.manifests.templates import template_names

    return _beginning(template_names(), incomplete)


def kinds(incomplete: str) -> list[str]:
    """Completion: the kinds that have a schema."""
    from harnessctl.manifests.schemas import kinds as known

    return _beginning(known(), incomplete)


def pages(incomplete: str) -> list[str]:
    """Completion: the pages of the documentation."""
    from harnessctl.manifests.templates import docs_folder

    return _beginning(sorted(path.stem for path in docs_folder().glob("*.md")), incomplete)


def stages(incomplete: str) -> list[str]:
    """Completion: the stages of training."""
    from harnessctl.train.order import STAGES

    return _beginning(STAGES, incomplete)


Project = Annotated[
    Path | None,
    typer.Option("--project", help="Project folder; default: the nearest one above here.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Pure JSON on standard output.")]
HarnessName = Annotated[
    str | None,
    typer.Option("--harness", help="Only this harness of the project.", show_default=False, autocompletion=harnesses),
]
Keys = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Recipe keys; --cfg prints them all.", show_default=False),
]
Cfg = Annotated[bool, typer.Option("--cfg", help="Print the resolved recipe and stop.")]
Sweep = Annotated[bool, typer.Option("-m", help="Run every combination of comma-separated values.")]
RunDir = Annotated[
    Path | None, typer.Option("--run-dir", help="Where the run is kept; default: runs/.", show_default=False)
]
