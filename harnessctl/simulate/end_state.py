"""End state: the rows of a world after a request, as scorers compare them with gold."""

from __future__ import annotations

from collections.abc import Iterable

from harnessctl.records.scenario import EndState
from harnessctl.score.scorer import Tables
from harnessctl.simulate.database import quoted
from harnessctl.simulate.world import LiveWorld


def table_rows(world: LiveWorld, end_states: Iterable[EndState]) -> Tables:
    """Every row, as it is now, of the tables that `end_states` name, cells of JSON decoded; none for a table that the
    world does not have."""
    known = world.columns
    names = dict.fromkeys(state.table for state in end_states)
    return {name: world.read(f"SELECT * FROM {quoted(name)}")[1] if name in known else [] for name in names}
