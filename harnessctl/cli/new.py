"""`harnessctl new`: a skill, hook, tool or recipe to start from; one new file, found without a central list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json, Project

app = typer.Typer(help="Start a skill, hook, tool or recipe.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(show_default=False)]

SKILL = """\
---
name: {name}
description: Says in a sentence what this skill does and when to load it.
metadata: {{version: "0.1.0", kind: reply}}
---
What the viewer should get out of it, in a sentence.

## Rules

- State the one thing that must always hold. {{#first .protected}}
- State the next thing. {{#second}}
"""

HOOK = """\
apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: {name}
    version: 0.1.0
    event: stop
    check: {{max_chars: 200}}
    otherwise:
      action: retry
      max_retries: 1
      message: {{text: "Say it in at most 200 characters."}}
"""

TOOL = """\
apiVersion: harnessctl/v1
kind: Tools
tools:
  - name: {name}
    version: 0.1.0
    group: retrieval
    effect: none
    description: Says what the tool gives back and when to call it.
    parameters:
      type: object
      additionalProperties: false
      required: [query]
      properties:
        query: {{type: string, description: What to look for.}}
    run: {{python: "{module}:{name}"}}
"""

TOOL_CODE = '''\
"""The code of the tool `{name}`."""


def {name}(query: str) -> dict:
    """Answer `query`; the arguments are those of the manifest, checked before the call."""
    return {{"query": query, "answer": None}}
'''

RECIPE = """\
# @package _global_
# harnessctl {job} recipe={name}
defaults:
  - /{job}/default
  - _self_

seed: 0
"""


@app.command()
def skill(name: Name, project: Project = None, json: Json = False) -> None:
    """Write skills/NAME/SKILL.md."""
    _write(project, {f"skills/{name}/SKILL.md": SKILL.format(name=name)}, "skills", name, _SLUG, json=json)


@app.command()
def hook(name: Name, project: Project = None, json: Json = False) -> None:
    """Write manifests/hooks/NAME.yaml."""
    _write(project, {f"manifests/hooks/{name}.yaml": HOOK.format(name=name)}, "hooks", name, _SLUG, json=json)


@app.command()
def tool(name: Name, project: Project = None, json: Json = False) -> None:
    """Write manifests/tools/NAME.yaml and its Python code."""
    import keyword

    from harnessctl.errors import UsageError

    if keyword.iskeyword(name):
        raise UsageError(f"{name!r} is a word of Python, and its function has the tool's name")
    module = f"{name}_tool"
    files = {
        f"manifests/tools/{name}.yaml": TOOL.format(name=name, module=module),
        f"manifests/tools/{module}.py": TOOL_CODE.format(name=name),
    }
    _write(project, files, "tools", name, r"[a-z_][a-z0-9_]{0,63}", json=json)


@app.command()
def recipe(
    name: Name,
    job: Annotated[str, typer.Option("--job", help="The job that it is for.")] = "run",
    project: Project = None,
    json: Json = False,
) -> None:
    """Write recipes/JOB/NAME.yaml on top of the job's default."""
    from harnessctl.cli.project import project_root
    from harnessctl.errors import UsageError
    from harnessctl.recipes import recipe_folders

    known = {
        path.parent.name for folder in recipe_folders(project_root(project)) for path in folder.glob("*/default.yaml")
    }
    if job not in known:
        raise UsageError(f"no job {job!r}; there are {', '.join(sorted(known))}")
    files = {f"recipes/{job}/{name}.yaml": RECIPE.format(job=job, name=name)}
    _write(project, files, None, name, r"[a-z0-9]+([-_.][a-z0-9]+)*", json=json)


_SLUG = r"(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*"


def _write(
    project: Path | None, files: dict[str, str], include: str | None, name: str, pattern: str, *, json: bool
) -> None:
    """Write the files that do not exist yet, all or none, and say what to do next."""
    import re

    from harnessctl.cli import output
    from harnessctl.cli.project import project_root
    from harnessctl.errors import StorageError, UsageError
    from harnessctl.storage import write_atomic

    if not re.fullmatch(pattern, name):
        raise UsageError(f"{name!r} is no name for it; allowed {pattern}")
    root = project_root(project)
    for path in files:
        if (root / path).exists():
            raise UsageError(f"{path} exists", hint="choose another name")
    written: list[Path] = []
    try:
        for path, text in files.items():
            write_atomic(root / path, text.encode())
            written.append(root / path)
    except StorageError:
        for done in written:
            done.unlink(missing_ok=True)
        raise
    if json:
        output.json_data({"written": list(files)})
        return
    output.data("\n".join(files))
    if include is not None:
        output.talk(
            f"next: name it under include.{include} of a harness (unless a pattern there takes it in), then validate"
        )
