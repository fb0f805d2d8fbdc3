"""Checks: one family a file. A module of this package that has `CHECKS` ({key: compiler}) is found without a list."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Any

from harnessctl.errors import HookError
from harnessctl.runtime.checks.check import Check, Compiler, Setting


@functools.cache
def families() -> dict[str, Compiler]:
    """Every check by its key in a manifest."""
    found: dict[str, Compiler] = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        found |= getattr(importlib.import_module(module.name), "CHECKS", {})
    return found


def compile_check(spec: dict[str, Any], setting: Setting) -> Check:
    """The check that `{key: ...}` describes; HookError when it cannot be made."""
    if len(spec) != 1:
        raise HookError(f"a check has exactly one key; got {', '.join(spec) or 'none'}")
    ((key, value),) = spec.items()
    compiler = families().get(key)
    if compiler is None:
        raise HookError(f"there is no check `{key}`", hint=f"checks: {', '.join(sorted(families()))}")
    return compiler(value, setting)
