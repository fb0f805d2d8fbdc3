"""Files of an evaluation: scenarios, variations, trajectories, end states and scores, one line an item each.

What always holds: an item is done when its line of scores.jsonl is on disk, which is written last; line N of each file
but end_states.jsonl (which has a line only where gold has an end state) belongs to one item.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from harnessctl.bundle.variation import Variation
from harnessctl.errors import RecordError, StorageError
from harnessctl.evaluate.outcome import EndTables, Outcome
from harnessctl.records.scenario import Scenario
from harnessctl.records.score import Score
from harnessctl.storage import JsonLinesWriter, cut_torn_line, read_json_lines

#: In the order in which an item's lines are written.
NAMES = ("scenarios", "variations", "trajectories", "end_states", "scores")
KINDS: dict[str, type[Any]] = {
    "scenarios": Scenario,
    "variations": Variation,
    "end_states": EndTables,
    "scores": Score,
}


def path_of(folder: Path, name: str) -> Path:
    """The file of a kind of record."""
    return folder / f"{name}.jsonl"


def read_records(folder: Path, name: str) -> Iterator[Any]:
    """The records of one file, typed, in order; none when there is no file. RecordError names path, line and cause."""
    path = path_of(folder, name)
    if not path.exists():
        return
    for number, document in read_json_lines(path):
        try:
            yield msgspec.convert(document, KINDS[name])
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: not of {name}: {error}") from error


class EvalFiles:
    """The files of one run, for appending. `done` are the ids of items that were done before."""

    def __init__(self, folder: Path) -> None:
        """Cut off what a broken-off run left behind its last whole item. RecordError when a score cannot be read."""
        self._folder = folder
        cut_torn_line(path_of(folder, "scores"))
        self.done: list[str] = [score.id for score in read_records(folder, "scores")]
        ended = set(self.done)
        for name in ("scenarios", "variations", "trajectories"):
            _keep_lines(path_of(folder, name), len(self.done))
        cut_torn_line(path_of(folder, "end_states"))
        kept = sum(tables.id in ended for tables in read_records(folder, "end_states"))
        _keep_lines(path_of(folder, "end_states"), kept)
        self._stack = ExitStack()
        self._writers: dict[str, JsonLinesWriter] = {}

    def write(self, outcome: Outcome) -> None:
        """Append an item's lines. StorageError when the disk refuses."""
        for name in NAMES:
            line = outcome.lines.get(name)
            if line is not None:
                self._writer(name).write(line)

    def _writer(self, name: str) -> JsonLinesWriter:
        if name not in self._writers:
            self._writers[name] = self._stack.enter_context(JsonLinesWriter(path_of(self._folder, name)))
        return self._writers[name]

    def __enter__(self) -> EvalFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def drop_unanswered(folder: Path) -> int:
    """Take back the last items of a run that no model answered (its endpoint had gone, say), so that they are asked again;
    returns how many. Only the last ones: a file is cut at its end, which no crash can leave half done.
    """
    with EvalFiles(folder) as files:
        done = len(files.done)
    unanswered = 0
    for _, trajectory in read_json_lines(path_of(folder, "trajectories")) if done else ():
        unanswered = unanswered + 1 if trajectory.get("stop") == "model_error" else 0
    if unanswered:
        _keep_lines(path_of(folder, "scores"), done - unanswered)
    return unanswered


def _keep_lines(path: Path, count: int) -> None:
    """Cut what follows the first `count` lines of `path` off."""
    try:
        with open(path, "r+b") as file:
            for _ in range(count):
                file.readline()
            file.truncate(file.tell())
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"cannot write {path}: {os.strerror(error.errno or 0)}") from error
