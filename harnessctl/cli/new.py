"""`harnessctl new`: a skill, hook, tool, recipe or operator to start from; one new file, found without a central list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json, Project

app = typer.Typer(help="Start a skill, hook, tool, recipe or operator.", no_args_is_help=True)

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

OPERATOR = '''\
"""{name}: says in a sentence what it varies.

What always holds: say what a variant never loses by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import Framing


class {title}:
    """Target: `viewer`. What viewers say is put into one of `tags`."""

    name = "{name}"
    #: skill-identifier | skill-content | tool-definition | system-prompt | hook | message
    dimension: Dimension = "message"
    #: mask | add | rename | reword | reorder | behave: operators run in this order, then by name.
    stage: Stage = "behave"
    #: Whether an agent that follows its harness scores the same on the variant.
    keeps_difficulty = True
    #: What an envelope may set under `options`, with the defaults; `reads` are the other settings, of count and ranges.
    options: Mapping[str, Any] = {{"tags": ["audience", "floor", "room"]}}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        """What it could change, by canonical name; each is drawn for by itself, at the envelope's rate."""
        return ("viewer",)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        """Write the change into `draft.changes`; false when there is nothing to change."""
        tags = settings.options.get("tags", self.options["tags"])
        framing = draft.changes.framing or draft.state.prompt.framing or Framing()
        others = [tag for tag in tags if tag != framing.wrap]
        if not others:
            return False
        draft.changes.framing = msgspec.structs.replace(framing, wrap=stream.choice(others))
        return True


OPERATOR = {title}()
'''


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


@app.command()
def operator(name: Name, project: Project = None, json: Json = False) -> None:
    """Write manifests/operators/NAME.py, an augmentation operator."""
    from harnessctl.augment.discovery import FOLDER, shipped_operators
    from harnessctl.errors import UsageError

    if name in shipped_operators():
        raise UsageError(f"harnessctl has an operator {name} itself", hint="choose another name")
    title = f"Operator{''.join(part.capitalize() for part in name.split('-'))}"
    path = f"{FOLDER}/{name.replace('-', '_')}.py"
    then = f"name it under `operators:` of an envelope, such as `{name}: {{rate: 0.5}}`, then augment"
    _write(project, {path: OPERATOR.format(name=name, title=title)}, None, name, _SLUG, json=json, then=then)


_SLUG = r"(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*"


def _write(
    project: Path | None,
    files: dict[str, str],
    include: str | None,
    name: str,
    pattern: str,
    *,
    json: bool,
    then: str | None = None,
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
        then = f"name it under include.{include} of a harness (unless a pattern there takes it in), then validate"
    if then is not None:
        output.talk(f"next: {then}")
