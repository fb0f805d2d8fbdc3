"""Asked set: the progress of a set that is built, the digest of one that is read, and what is to be told of it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from harnessctl.cli import output
from harnessctl.cli.progress import Progress
from harnessctl.evaluate.building.frozen import SUFFIX, FrozenSet
from harnessctl.evaluate.building.set_files import set_digest, told
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.items import ItemSet
from harnessctl.evaluate.sets import set_named
from harnessctl.evaluate.setting import Setting

#: Without a terminal, progress has a line at most so often.
QUIET_S = 2.0


@contextmanager
def building(setting: Setting, asked: ItemSet) -> Generator[None]:
    """Progress of a set that is built in the block; nothing is said where none is."""
    shown: list[Progress] = []

    def on_built(done: int, total: int) -> None:
        if not shown:
            shown.append(Progress(f"building {asked.name}", total=total, quiet_s=QUIET_S))
            shown[0].__enter__()
        shown[0].advance("")

    setting.on_built = on_built
    try:
        yield
    finally:
        setting.on_built = None
        for progress in shown:
            progress.__exit__(None, None, None)


def set_digest_of(config: EvalConfig) -> str | None:
    """The digest of the file that items are read from; null where they are built."""
    return set_digest(Path(config.items)) if config.items.endswith(SUFFIX) else None


def tell_set(config: EvalConfig, setting: Setting) -> None:
    """Say what of a set's file is not of this harness or world."""
    asked = set_named(config.items)
    if isinstance(asked, FrozenSet):
        for note in told(asked.path, asked.records, setting):
            output.talk(f"warning: {note}")
