"""Sandboxes that are taken up again, kept answers, and the clock that stands still."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harnessctl.bundle.validators import validator_of
from harnessctl.evaluate.settled import settled
from harnessctl.records.comment import CommentInput
from harnessctl.simulate.answers import KEPT, Answers
from harnessctl.simulate.clock import still_clock
from harnessctl.simulate.world import LiveWorld, open_world

MANIFEST = """apiVersion: harnessctl/v1
kind: World
name: shop
version: 1.0.0
tables:
  goods: {file: shop/goods.csv, key: [id]}
  state: {file: shop/state.csv, key: [room], mutable: true}
  faq: {file: shop/faq.csv, key: [id]}
faq: {table: faq}
context:
  now: {one: true, sql: "SELECT s.room, g.name FROM state AS s JOIN goods AS g ON g.id = s.good WHERE s.room = :room"}
  goods: {sql: "SELECT * FROM goods ORDER BY id"}
  faq: {search: faq}
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LiveWorld]:
    folder = tmp_path / "manifests" / "worlds" / "shop"
    folder.mkdir(parents=True)
    (folder.parent / "shop.yaml").write_text(MANIFEST)
    (folder / "goods.csv").write_text("id,name\n1,tea\n2,wok\n")
    (folder / "state.csv").write_text("room,good\na,1\nb,2\n")
    (folder / "faq.csv").write_text("id,question,answer\n1,Is delivery free?,From 99 yuan on.\n")
    (tmp_path / "harnessctl.toml").write_text("")
    with open_world(folder.parent / "shop.yaml") as found:
        yield found


def asked(room: str = "a", text: str = "is delivery free?") -> CommentInput:
    return CommentInput(id="1", text=text, room=room)


def write(world: LiveWorld, sql: str) -> None:
    world.connection().execute(sql)


CHANGE = "UPDATE state SET good = 2 WHERE room = 'a'"


@pytest.mark.parametrize(
    "statements",
    [
        [CHANGE],
        ["DELETE FROM state"],
        ["BEGIN", CHANGE],
        ["BEGIN", CHANGE, "ROLLBACK", "INSERT INTO state VALUES ('c', 1)"],
        ["CREATE TEMP TABLE state AS SELECT 'a' AS room, 2 AS good"],
        ["CREATE TABLE notes (text)"],
    ],
)
def test_a_renewed_sandbox_is_a_new_one(world: LiveWorld, statements: list[str]) -> None:
    with world.sandbox() as sandbox:
        first = sandbox.context(asked())
        for statement in statements:
            write(sandbox, statement)
        sandbox.renew()
        names = {row["name"] for row in sandbox.connection().execute("SELECT name FROM main.sqlite_master")}
        assert "notes" not in names
        assert sandbox.connection().execute("SELECT name FROM temp.sqlite_master").fetchall() == []
        assert not sandbox.connection().in_transaction
        assert sandbox.context(asked()) == first
        assert first["now"] == {"room": "a", "name": "tea"}


def test_a_write_is_seen_whoever_made_it_and_whenever(world: LiveWorld) -> None:
    with world.sandbox() as sandbox:
        first = sandbox.context(asked())
        sandbox.connection()
        sandbox.renew()
        thread = threading.Thread(target=write, args=(sandbox, CHANGE))
        thread.start()
        thread.join()
        sandbox.renew()
        assert sandbox.context(asked()) == first
        write(sandbox, CHANGE)
        sandbox.rest()
        sandbox.renew()
        assert sandbox.context(asked()) == first


def test_a_connection_whose_rows_a_tool_changed_is_not_handed_on(world: LiveWorld) -> None:
    with world.sandbox() as sandbox:
        sandbox.connection().row_factory = None
        sandbox.renew()
        assert sandbox.connection().execute("SELECT room FROM state").fetchone()["room"] == "a"


def test_an_untouched_sandbox_keeps_its_connection(world: LiveWorld) -> None:
    with world.sandbox() as sandbox:
        before = sandbox.connection()
        before.execute("SELECT * FROM state").fetchall()
        sandbox.renew()
        assert sandbox.connection() is before
        write(sandbox, CHANGE)
        sandbox.renew()
        assert sandbox.connection() is not before


def test_the_context_tells_what_was_written(world: LiveWorld) -> None:
    with world.sandbox() as sandbox, world.sandbox() as other:
        assert sandbox.context(asked())["now"]["name"] == "tea"
        write(sandbox, CHANGE)
        assert sandbox.context(asked())["now"]["name"] == "wok"
        assert other.context(asked())["now"]["name"] == "tea"
        assert other.context(asked("b"))["now"]["name"] == "wok"
        assert other.context(asked("c"))["now"] is None


def test_nobody_changes_a_kept_answer(world: LiveWorld) -> None:
    first = world.context(asked())
    assert first["faq"][0]["answer"] == "From 99 yuan on."
    for value in (first["goods"][0], first["now"], first["faq"][0]):
        value.clear()
    again = world.context(asked())
    assert again["goods"][0] == {"id": 1, "name": "tea"}
    assert again["now"] == {"room": "a", "name": "tea"}
    assert again["faq"][0]["answer"] == "From 99 yuan on."


def test_answers_are_forgotten_in_the_end() -> None:
    answers, worked_out = Answers(), []

    def work_out() -> list[int]:
        worked_out.append(1)
        return [1]

    for _ in range(3):
        assert answers.get("a", work_out) == [1]
    assert len(worked_out) == 1
    for number in range(KEPT):
        answers.get(number, lambda: None)
    answers.get("a", work_out)
    assert len(worked_out) == 2


def test_a_clock_that_stands() -> None:
    clock = still_clock()
    assert clock.monotonic() == clock.monotonic()
    assert clock.perf() == clock.perf()
    assert clock.now().isoformat() == "2000-01-01T00:00:00+00:00"
    assert asyncio.run(_slept(clock.sleep)) is None


async def _slept(sleep: Any) -> None:
    return await asyncio.wait_for(sleep(1e6), 5)


def test_validators_are_shared_by_content() -> None:
    assert validator_of({"type": "integer"}) is validator_of({"type": "integer"})
    assert validator_of({"type": "integer"}).is_valid(3)
    assert not validator_of({"type": "string"}).is_valid(3)
    assert validator_of({"const": 2**70}).is_valid(2**70)
    with pytest.raises(ValueError, match="nonsuch"):
        validator_of({"type": "nonsuch"})


def test_a_run_leaves_the_collector_as_it_found_it() -> None:
    assert gc.get_freeze_count() == 0
    with settled():
        assert gc.get_freeze_count() > 0
        frozen = gc.get_freeze_count()
        kept = [[number] for number in range(1000)]  # what is new is not frozen by the inner one; what is old may die
        with settled():
            assert 0 < gc.get_freeze_count() <= frozen
        assert 0 < gc.get_freeze_count() <= frozen
        assert len(kept) == 1000
    assert gc.get_freeze_count() == 0
