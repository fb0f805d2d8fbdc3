"""Scenario files: reading them back, typed, one by one, with path, line and cause where one cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harnessctl.errors import RecordError, StorageError
from harnessctl.records.scenario import FORMAT, Scenario
from harnessctl.storage import read_json_lines


def read_scenarios(path: Path) -> Iterator[Scenario]:
    """Each scenario of `path`, in order; ids are unique. RecordError names path, line and cause; a torn last line is
    passed over."""
    seen: dict[str, int] = {}
    if not path.is_file():
        raise StorageError(f"cannot read {path}: {'it is a folder' if path.is_dir() else 'there is no such file'}")
    for number, document in read_json_lines(path):
        found = document.get("format") if isinstance(document, dict) else None
        if found != FORMAT:
            raise RecordError(f"{path}:{number}: not a scenario of format {FORMAT}; got {found!r}")
        try:
            scenario = msgspec.convert(document, Scenario)
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: not a scenario: {error}") from error
        if scenario.id in seen:
            raise RecordError(
                f"{path}:{number}: the id {scenario.id!r} is taken by line {seen[scenario.id]}",
                hint="ids are unique in a file",
            )
        seen[scenario.id] = number
        yield scenario
