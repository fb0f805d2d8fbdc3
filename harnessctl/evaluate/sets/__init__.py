"""Sets of items: one a file. A module of this package that has `SET` (evaluate.items.ItemSet) is found without a list.

A file of items that `sets build` wrote is a set, too: by its path.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from pathlib import Path

from harnessctl.errors import UsageError
from harnessctl.evaluate.building.frozen import SUFFIX, frozen_set
from harnessctl.evaluate.items import ItemSet


@functools.cache
def item_sets() -> dict[str, ItemSet]:
    """Every set by name."""
    found: dict[str, ItemSet] = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        items: ItemSet | None = getattr(importlib.import_module(module.name), "SET", None)
        if items is not None:
            found[items.name] = items
    return found


def set_named(name: str) -> ItemSet:
    """The set of a name, or of a file (`FILE.jsonl`) that `sets build` wrote; UsageError with those that there are."""
    if name.endswith(SUFFIX):
        return frozen_set(Path(name))
    found = item_sets().get(name)
    if found is None:
        raise UsageError(f"no set of items {name!r}", hint=f"sets: {', '.join(sorted(item_sets()))}")
    return found
