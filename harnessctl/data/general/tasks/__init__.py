"""Tasks: one a file. A module of this package that has `TASK` (source.Task) is found without a list."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from harnessctl.data.general.source import Task


@functools.cache
def tasks() -> dict[str, Task]:
    """Every task by name."""
    found: dict[str, Task] = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        task: Task | None = getattr(importlib.import_module(module.name), "TASK", None)
        if task is not None:
            found[task.name] = task
    return found
