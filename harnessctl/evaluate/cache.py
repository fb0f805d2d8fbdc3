"""Answer cache: trajectories of earlier runs, by all that decides what is asked and how often it was asked before.

What always holds: an answer is found again only where bundle, world, request, model, sampling, limits, seed, faults and
repeat are the same; one that ended by a model's failure is never kept. An endpoint that puts another model behind the
same name is not noticed, which is why a run must ask for the cache.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harnessctl.decode.catalog import locate
from harnessctl.evaluate.items import Item
from harnessctl.evaluate.setting import Setting
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.scorer import Tables
from harnessctl.storage import digest, make_folder, write_atomic

#: Endings that say nothing of the policy.
_NOT_KEPT = frozenset({"model_error", "cancelled"})
#: Keys of a config that say which items there are, where work is done and what is made of it, not what is asked.
_APART = ("suite", "n", "limit", "repeats", "retries", "fail_on_error", "cache", "workers", "variants", "envelope")


class _Entry(msgspec.Struct):
    trajectory: Trajectory
    after: dict[str, list[dict[str, Any]]] | None


class AnswerCache:
    """The entries of one setting, a file each under `folder`."""

    def __init__(self, folder: Path, setting: Setting) -> None:
        self._folder = folder
        config = msgspec.to_builtins(setting.config)
        for name in _APART:
            del config[name]
        self._asked: dict[str, Any] = {"config": config, "world": setting.world.digest}
        if setting.config.policy == "local":
            self._asked["weights"] = _weights(setting.config.model.name)
        self._decoder = msgspec.json.Decoder(_Entry)

    def find(self, item: Item) -> tuple[Trajectory, Tables | None] | None:
        """An item's answer and the tables of its end state; null where there is none that can be read."""
        try:
            entry = self._decoder.decode(self._path(item).read_bytes())
        except (OSError, msgspec.DecodeError):
            return None
        return entry.trajectory, entry.after

    def keep(self, item: Item, trajectory: Trajectory, after: Tables | None) -> None:
        """Keep an answer, unless the model failed. StorageError when the disk refuses."""
        if trajectory.stop in _NOT_KEPT:
            return
        path = self._path(item)
        make_folder(path.parent)
        tables = None if after is None else {name: list(rows) for name, rows in after.items()}
        write_atomic(path, msgspec.json.encode(_Entry(trajectory, tables)))

    def _path(self, item: Item) -> Path:
        gold = item.scenario.gold
        name = digest(
            self._asked
            | {
                "bundle": item.bundle.digest,
                "request": msgspec.to_builtins(item.scenario.request),
                "situation": "" if item.scenario.task is None else item.scenario.task.situation,
                "end_state": msgspec.to_builtins(gold.end_state) if gold is not None else [],
                "repeat": item.repeat,
            }
        )
        return self._folder / name[:2] / f"{name}.json"


def _weights(name: str) -> list[tuple[str, int, int]]:
    """What tells one state of a model's folder from another: its files, their sizes and times."""
    folder = locate(name).path.resolve()
    files = [(path, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return [(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in files]
