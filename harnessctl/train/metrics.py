"""Metrics: what a training shows of itself, to metrics.jsonl, to TensorBoard and to whoever watches.

What always holds: metrics.jsonl has one line a step, in order, and none of a step that was taken back.

Names that the progress line and the report know: `loss`, `lr`, `grad_norm`, `tokens_per_second`, `reward/<dimension>`,
`discarded` (share of trajectories), `cot/<group>` (mean tokens), `held_out/<what>`, `exact/<task>`, `skipped`,
`seconds/<part>`. Others are kept and plotted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from harnessctl.storage import JsonLinesWriter, cut_torn_line, read_json_lines, write_atomic

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FILE_NAME = "metrics.jsonl"
BOARD = "tensorboard"

Show = Callable[[int, Mapping[str, float]], None]


class Metrics:
    """The metrics of one run, in `folder`. `show`, which may be set later, is told of every step. Without a folder nothing is kept: so it is in
    all processes but the first. Close it with `close` or `with`."""

    def __init__(self, folder: Path | None, *, show: Show | None = None, board: bool = True) -> None:
        self._folder = folder
        self.show = show
        self._has_board = board
        self._lines: JsonLinesWriter | None = None
        self._board: SummaryWriter | None = None
        self._last = 0

    def rewind(self, step: int) -> None:
        """Go on after step `step`: what was kept of later ones is dropped."""
        self.close()
        self._last = step
        if self._folder is None:
            return
        path = self._folder / FILE_NAME
        cut_torn_line(path)
        if path.is_file():
            lines = [line for _, line in read_json_lines(path)]
            kept = [line for line in lines if line["step"] <= step]
            if len(kept) < len(lines):
                write_atomic(path, b"".join(orjson.dumps(line) + b"\n" for line in kept))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Keep what step `step` (from 1) came to. StorageError when the disk is full."""
        if self._folder is not None:
            if self._lines is None:
                self._open(step)
            assert self._lines is not None
            self._lines.write(orjson.dumps({"step": step, **values}))
            if self._board is not None:
                for name, value in values.items():
                    self._board.add_scalar(name, value, step)
        self._last = step
        if self.show is not None:
            self.show(step, values)

    def _open(self, step: int) -> None:
        assert self._folder is not None
        self._lines = JsonLinesWriter(self._folder / FILE_NAME)
        if self._has_board:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(self._folder / BOARD), purge_step=step)

    def close(self) -> None:
        """Flush and close; closing twice is allowed."""
        if self._lines is not None:
            self._lines.close()
        if self._board is not None:
            self._board.close()
        self._lines = self._board = None

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl; none where there is no such file."""
    path = folder / FILE_NAME
    return [line for _, line in read_json_lines(path)] if path.is_file() else []
