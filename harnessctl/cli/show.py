"""`harnessctl show`: what is in a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harnessctl.cli.options import HarnessName, Json, Project

if TYPE_CHECKING:
    from harnessctl.bundle.state import Framing, Surface


def show(
    bundle: Annotated[
        str | None, typer.Argument(help="A bundle file or a harness of the project.", show_default=False)
    ] = None,
    inventory: Annotated[
        bool, typer.Option("--inventory", help="Tools by responsibility, skills and hooks with their versions.")
    ] = False,
    harness: HarnessName = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Show what is in a bundle.

    --inventory lists every module and reconciles the versions with the manifests.
    """
    from harnessctl.cli import output
    from harnessctl.cli.project import open_bundle

    found, root = open_bundle(bundle, project, harness=harness)
    if inventory:
        raise typer.Exit(_inventory(found, root, json=json))
    state = found.state
    summary = {
        "name": found.name,
        "version": found.version,
        "digest": found.digest,
        "world": found.world,
        "skills": len(state.skills),
        "tools": len(state.tools),
        "hooks": len(state.hooks),
        "prompt blocks": len(state.prompt.blocks),
        "require_skill": state.require_skill,
        "session keeps": state.session_keep,
        "code modules": sorted(state.code),
        "shown renamed": _renamed(state.surface),
        "framing": _framing(state.prompt.framing),
    }
    if json:
        output.json_data({**summary, "limits": state.limits, "surface": state.surface})
        return
    for name, value in summary.items():
        shown = ", ".join(value) if isinstance(value, list) else value
        output.data(f"{name:<14} {shown if shown not in (None, '') else '-'}")
    rows = [
        (name, f"{limit.value:g}", " to ".join(f"{x:g}" for x in limit.range or []) or "-", limit.unit or "-")
        for name, limit in state.limits.items()
    ]
    output.table(("limit", "value", "range", "unit"), rows)


def _renamed(surface: Surface) -> list[str]:
    """How many names a model sees that are not the canonical ones."""
    counts = {
        "skills": len(surface.skills),
        "tools": len(surface.tools),
        "parameters": sum(map(len, surface.parameters.values())),
    }
    return [f"{count} {what if count > 1 else what[:-1]}" for what, count in counts.items() if count]


def _framing(framing: Framing | None) -> list[str]:
    """How what viewers say is laid before the model, in words."""
    if framing is None:
        return []
    newest = [f"{name} newest first" for name in framing.reverse]
    return newest + ["a lead"] * bool(framing.lead) + ([f"<{framing.wrap}>"] if framing.wrap else [])


def _inventory(found: object, root: object, *, json: bool) -> int:
    from pathlib import Path

    from harnessctl.bundle.files import Bundle
    from harnessctl.cli import output
    from harnessctl.compile.inventory import inventory, reconcile

    assert isinstance(found, Bundle)
    listed = inventory(found)
    faults = reconcile(found, root) if isinstance(root, Path) else []
    if json:
        output.json_data({"inventory": listed, "faults": [f.as_dict() for f in faults]})
        return 1 if faults else 0
    for section in listed.tables():
        output.table(section.columns, section.rows, title=section.title)
    output.faults(faults)
    if isinstance(root, Path):
        output.talk("versions differ from the manifests" if faults else "versions agree with the manifests")
    return 1 if faults else 0
