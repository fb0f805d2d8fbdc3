"""Sandboxes of sessions: bounded, and never taken away from a call that is under way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harnessctl.errors import StorageError
from harnessctl.simulate.serving.sandboxes import Sandboxes
from harnessctl.simulate.world import LiveWorld, open_world


@pytest.fixture
def world(shop: Path) -> Iterator[LiveWorld]:
    with open_world(shop / "manifests/worlds/shop.yaml") as opened:
        yield opened


def reservations(sandboxes: Sandboxes, session: str) -> int:
    """Makes one more, and counts them."""
    world = sandboxes.get(session).world
    assert world is not None
    db = world.connection()
    db.execute("INSERT INTO reservations SELECT count(*) + 1, 1, 'main' FROM reservations")
    return db.execute("SELECT count(*) FROM reservations").fetchone()[0]


def test_a_session_keeps_its_own_and_begins_anew_when_it_was_put_out(world: LiveWorld) -> None:
    sandboxes = Sandboxes(world, capacity=2)
    assert [reservations(sandboxes, name) for name in ("a", "a", "b", "a")] == [1, 2, 1, 3]
    b = sandboxes.get("b").world
    sandboxes.get("a")
    sandboxes.get("c")
    assert len(sandboxes) == 2
    with pytest.raises(StorageError):
        b.connection()
    assert reservations(sandboxes, "a") == 4
    assert reservations(sandboxes, "b") == 1
    sandboxes.close()
    assert len(sandboxes) == 0
    assert world.connection().execute("SELECT count(*) FROM reservations").fetchone()[0] == 0


def test_one_with_a_call_under_way_stays(world: LiveWorld) -> None:
    sandboxes = Sandboxes(world, capacity=1)
    busy = sandboxes.get("a")
    busy.calls = 1
    sandboxes.get("b")
    sandboxes.get("c")
    assert sandboxes.get("a") is busy
    busy.calls = 0
    sandboxes.get("d")
    assert len(sandboxes) == 1
    sandboxes.close()


def test_without_a_world_sessions_share_nothing(world: LiveWorld) -> None:
    sandboxes = Sandboxes(None)
    sandboxes.get("a").tools["x"] = 1
    assert sandboxes.get("b").tools == {}
    assert sandboxes.get("a").world is None
