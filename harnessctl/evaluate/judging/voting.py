"""Voting: many cases before a panel, so many at once, in any order; the votes come back in the order of the cases.

What always holds: each voter is asked about each case once; what was kept is on disk before it counts, so that a pass
that was killed goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.judging.case import Case
from harnessctl.evaluate.judging.panel import Panel
from harnessctl.records.vote import Vote


async def collect(
    panel: Panel, cases: Sequence[Case], *, workers: int, on_vote: Callable[[Vote], None] | None = None
) -> list[list[Vote]]:
    """The votes on each case, in the order of cases and voters; `workers` requests to judges are under way at once.

    RecordError for two cases of one id; StorageError when a vote cannot be kept (those before it are).
    """
    if repeated := [name for name, count in Counter(case.id for case in cases).items() if count > 1]:
        raise RecordError(f"two items have the id {repeated[0]!r}", hint="a vote is of one item; give each its own id")
    if workers > 1 and (local := [v.name for v in panel.voters if v.model.policy == "local"]):
        raise UsageError(f"{local[0]} is a local model, which answers one request at a time", hint="workers=1")
    votes: list[list[Vote | None]] = [[None] * len(panel.voters) for _ in cases]
    waiting = iter([(place, number) for place in range(len(cases)) for number in range(len(panel.voters))])

    async def work() -> None:
        for place, number in waiting:  # shared: each pair goes to one worker
            vote = await panel.voters[number].vote(cases[place])
            votes[place][number] = vote
            if on_vote is not None:
                on_vote(vote)

    tasks = [asyncio.ensure_future(work()) for _ in range(max(1, workers))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [[vote for vote in of_case if vote is not None] for of_case in votes]
