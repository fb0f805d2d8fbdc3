"""Isolated requests: each has the world as it was at first, and a session has what its own turns wrote."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from shop_agent import ToldModel, calls, comment, make_agent, says, shop_bundle, tool

from harnessctl.errors import StorageError, UsageError
from harnessctl.records.trajectory import Trajectory

TAKE = """
async def take(ctx):
    ctx.world.stock -= 1
    return ctx.world.stock
"""


class Stock:
    """A world of one number; counts what is made of it."""

    digest = "0" * 64

    def __init__(self, made: list[Stock] | None = None) -> None:
        self.stock = 10
        self.made = [] if made is None else made
        self.is_closed = False
        self.rests = 0
        self.fails = False

    def context(self, request: object, names: object = None) -> dict[str, Any]:
        return {"stock": self.stock}

    def sandbox(self) -> Stock:
        if self.fails:
            raise StorageError("cannot write 7.sqlite: No space left on device")
        self.made.append(Stock(self.made))
        return self.made[-1]

    def rest(self) -> None:
        self.rests += 1

    def close(self) -> None:
        self.is_closed = True


def run(world: Any, *sessions: str | None, isolate: bool = True) -> list[Trajectory]:
    """A request for each of `sessions`, side by side."""
    answers = [calls(("take", {})), says("Taken.")] * len(sessions)
    bundle = shop_bundle(tools=[tool("take", {}, effect="write")], skills=[], code={"shop": TAKE})
    agent = make_agent(bundle, ToldModel(*answers), world=world, isolate=isolate)

    async def main() -> list[Trajectory]:
        return [await agent.run(comment(id=str(n), session=name)) for n, name in enumerate(sessions)]

    return asyncio.run(main())


def took(trajectories: list[Trajectory]) -> list[tuple[int, int]]:
    """(stock in the prompt's context, stock after the tool) of each."""
    return [(t.context["stock"], t.tools[0].result) for t in trajectories]


def test_without_isolation_requests_share_the_world() -> None:
    assert took(run(Stock(), None, None, isolate=False)) == [(10, 9), (9, 8)]


def test_each_request_has_a_copy_of_its_own_which_is_closed_after_it() -> None:
    world = Stock()
    assert took(run(world, None, None)) == [(10, 9), (10, 9)]
    assert [copy.is_closed for copy in world.made] == [True, True]
    assert world.stock == 10


def test_a_session_keeps_its_copy_which_rests_between_turns() -> None:
    world = Stock()
    assert took(run(world, "s", "t", "s")) == [(10, 9), (10, 9), (9, 8)]
    assert [(copy.is_closed, copy.rests) for copy in world.made] == [(False, 2), (False, 1)]


def test_a_copy_that_cannot_be_made_ends_its_request_alone() -> None:
    world = Stock()
    world.fails = True
    (trajectory,) = run(world, None)
    assert trajectory.stop == "hook_blocked"
    assert trajectory.error == "context: the world failed: cannot write 7.sqlite: No space left on device"


def test_a_world_without_sandboxes_is_refused_at_once() -> None:
    class Plain:
        digest = "0" * 64

    with pytest.raises(UsageError, match="without sandboxes"):
        make_agent(shop_bundle(), ToldModel(), world=Plain(), isolate=True)
    make_agent(shop_bundle(), ToldModel(), isolate=True)  # without a world there is nothing to isolate
