"""End state: whether the tables are after the request as gold has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from harnessctl.records.scenario import EndState, Gold
from harnessctl.score.calls import equal_values
from harnessctl.score.scorer import Tables


def unmet(gold: Gold, after: Tables) -> list[str]:
    """What of gold's end state is not so; rows of tables that `after` does not have are missing."""
    return [reason for state in gold.end_state if (reason := _fault(state, after.get(state.table, [])))]


def _fault(state: EndState, rows: list[dict[str, Any]]) -> str | None:
    wanted = {**state.where, **state.values}
    is_there = any(_fits(row, wanted) for row in rows)
    if is_there != state.absent:
        return None
    shown = orjson.dumps(wanted).decode()
    return (
        f"table {state.table} has a row that it must not have: {shown}"
        if state.absent
        else f"table {state.table} has no row {shown}"
    )


def _fits(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in row and equal_values(row[name], value) for name, value in wanted.items())
