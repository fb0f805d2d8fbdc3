"""Measures: what is asked of a policy to know its general skill, always on names that nobody trains on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harnessctl.data.general import ENTRIES, GeneralItem, Space, default_shares, draw

#: Added to seeds, so that nothing measured on is of a stream that is trained on.
SEEDS_APART = 1 << 31
#: How many entries a look-up is measured among.
AMONG = 8


@dataclass(slots=True, frozen=True)
class Measure:
    """One task under one condition."""

    task: str
    concepts: Space = "train"
    entries: tuple[int, int] = ENTRIES

    def items(self, seed: int, count: int) -> list[GeneralItem]:
        """The first `count` items of a seed."""
        return [
            draw(
                SEEDS_APART + seed,
                number,
                names="held-out",
                concepts=self.concepts,
                shares={self.task: 1.0},
                entries=self.entries,
            )
            for number in range(count)
        ]


def measures(tasks: Iterable[str] | None = None) -> dict[str, Measure]:
    """The measures of the named tasks (null: of all), by name.

    Look-up is among 8 entries, and once more about matters that nobody trains on (`lookup-unseen`).
    """
    found: dict[str, Measure] = {}
    for task in sorted(default_shares() if tasks is None else tasks):
        if task == "lookup":
            found[task] = Measure(task, entries=(AMONG, AMONG))
            found["lookup-unseen"] = Measure(task, concepts="held-out", entries=(AMONG, AMONG))
        else:
            found[task] = Measure(task)
    return found
