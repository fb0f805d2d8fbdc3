"""Suites: one a file. A module of this package that has `SUITE` (evaluate.items.Suite) is found without a list."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from harnessctl.errors import UsageError
from harnessctl.evaluate.items import Suite


@functools.cache
def suites() -> dict[str, Suite]:
    """Every suite by name."""
    found: dict[str, Suite] = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        suite: Suite | None = getattr(importlib.import_module(module.name), "SUITE", None)
        if suite is not None:
            found[suite.name] = suite
    return found


def suite_named(name: str) -> Suite:
    """The suite; UsageError with those that there are."""
    suite = suites().get(name)
    if suite is None:
        raise UsageError(f"no suite {name!r}", hint=f"suites: {', '.join(sorted(suites()))}")
    return suite
