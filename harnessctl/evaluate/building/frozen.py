"""Frozen set: a file of built items as a set of its own, whatever the version of harnessctl that built it.

What always holds: a file is read once as long as it is not written anew.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harnessctl.bundle.set_item import SetItem
from harnessctl.errors import UsageError
from harnessctl.evaluate.metrics import COLUMNS

if TYPE_CHECKING:
    from harnessctl.evaluate.items import Items
    from harnessctl.evaluate.setting import Setting

SUFFIX = ".jsonl"


@dataclass(slots=True)
class FrozenSet:
    """An ItemSet. `records` are the items of the file."""

    path: Path
    name: str
    title: str
    columns: Mapping[str, str]
    size: int
    records: tuple[SetItem, ...]

    def items(self, setting: Setting) -> Items:
        """The items; UsageError when they are for another harness, or the file has not so many."""
        from harnessctl.evaluate.building.built import SetItems

        made_for = self.records[0].scenario.harness
        if made_for != setting.bundle.name:
            raise UsageError(
                f"{self.path} was built for the harness {made_for}, not for {setting.bundle.name}",
                hint=f"give harness={made_for}, or build the set for {setting.bundle.name}",
            )
        if setting.config.n is not None and setting.config.n > self.size:
            raise UsageError(
                f"{self.path} has {self.size} items, not {setting.config.n}", hint=f"n={self.size} at most"
            )
        return SetItems(setting, self.records)


def frozen_set(path: Path) -> FrozenSet:
    """The set of a file. UsageError when there is none or it is empty, RecordError names path, line and cause."""
    try:
        state = path.stat()
    except OSError:
        state = None
    mark = (0, 0) if state is None else (state.st_mtime_ns, state.st_size)
    return _read(path, mark)


@functools.lru_cache(maxsize=4)
def _read(path: Path, mark: tuple[int, int]) -> FrozenSet:
    from harnessctl.evaluate.building.set_files import read_set
    from harnessctl.evaluate.sets import item_sets

    records = tuple(read_set(path))
    name = records[0].set
    known = item_sets().get(name)
    return FrozenSet(
        path=path,
        name=name,
        title=name if known is None else known.title,
        columns=COLUMNS if known is None else known.columns,
        size=len(records),
        records=records,
    )
