"""Visitor rows: the rows of an online test, CSV or JSON Lines, one or more a visitor."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.statistics.uplift import Visitors, is_treated
from harnessctl.storage import read_json_lines


def read_arms(
    path: Path,
    *,
    visitor: str,
    metric: str,
    arm: str | None,
    control: str,
    treatment: str,
    salt: str = "",
    share: float | None = None,
) -> tuple[Visitors, Visitors]:
    """Control and treatment of a file. `visitor` and `metric` are its columns; `arm` is the one that names the arm, or null:
    then each visitor's hash says it, `share` of them the treatment.

    RecordError names path, line and cause for a row that lacks a column, has no number, another arm's name, or a visitor
    who is in both arms.
    """
    if arm is None and share is None:
        raise UsageError("without a column for the arm, a share says who is treated", hint="--share 0.2 --salt NAME")
    arms = {control: Visitors(control), treatment: Visitors(treatment)}
    if len(arms) < 2:
        raise UsageError(f"control and treatment are both called {control!r}")
    for line, row in _rows(path):
        where = f"{path}:{line}"
        name = _text(row, visitor, where)
        value = _number(row, metric, where)
        if arm is None:
            named = treatment if is_treated(name, salt, share or 0.0) else control
        else:
            named = _text(row, arm, where)
        if named not in arms:
            raise RecordError(
                f"{where}: {arm} {named!r} is neither arm",
                hint=f"--control {control} and --treatment {treatment} name them; give the names of the file",
            )
        other = arms[treatment if named == control else control]
        if name in other.values:
            raise RecordError(f"{where}: visitor {name!r} is in both arms", hint="a visitor keeps its arm")
        arms[named].add(name, value)
    return arms[control], arms[treatment]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.suffix == ".csv":
        yield from _csv_rows(path)
        return
    for number, document in read_json_lines(path):
        if not isinstance(document, dict):
            raise RecordError(f"{path}:{number}: a row is a JSON object")
        yield number, document


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            for row in reader:
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error


def _text(row: dict[str, Any], column: str, where: str) -> str:
    value = row.get(column)
    if value is None or value == "":
        there = ", ".join(str(name) for name in row)
        raise RecordError(
            f"{where}: no {column}", hint=f"the row has {there}; --visitor, --metric and --arm name columns"
        )
    return str(value)


def _number(row: dict[str, Any], column: str, where: str) -> float:
    text = _text(row, column, where)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RecordError(f"{where}: {column} {text!r} is not a number")
    return value
