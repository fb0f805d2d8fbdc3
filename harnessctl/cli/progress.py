"""Progress of long work, on stderr: a bar on a terminal, plain lines without one."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Progress:
    """Counts items up to `total`; `done` of them were there before.

    Without a terminal each item has its line, but for those that come within `quiet_s` seconds of the last one; the last
    item has its line always.
    """

    def __init__(self, label: str, *, total: int, done: int = 0, quiet_s: float = 0.0) -> None:
        self._label = label
        self._total = total
        self._done = done
        self._started = time.monotonic()
        self._quiet_s = quiet_s
        self._told = self._started - quiet_s
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress
            from rich.table import Column

            from harnessctl.cli.output import console

            self._bar = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=12),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                # What there is to say gets the room that is left of the line, and no more.
                TextColumn("{task.fields[what]}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
                console=console(stderr=True),
                transient=True,
                expand=True,
            )
            self._task = self._bar.add_task(self._label, total=self._total, completed=self._done, what="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, what: str) -> None:
        """One more item is done; `what` says which and how."""
        self._done += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, what=what)
        elif (now := time.monotonic()) >= self._told + self._quiet_s or self._done == self._total:
            self._told = now
            took = now - self._started
            sys.stderr.write(f"{self._label} {self._done}/{self._total} ({took:.0f} s) {what}\n")
            sys.stderr.flush()
