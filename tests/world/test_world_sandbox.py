"""Sandboxes: private copies of mutable tables, the cache on disk, threads, and what happens at the end."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from world_project import ITEMS, shop

from harnessctl.errors import StorageError
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.simulate.world import open_world

STATES = "SELECT group_concat(state) FROM (SELECT state FROM orders ORDER BY order_id)"


def states(world) -> str:
    return world.connection().execute(STATES).fetchone()[0]


def test_what_a_sandbox_writes_stays_in_it(project):
    with open_world(shop(project)) as world, world.sandbox() as one, world.sandbox() as two:
        one.connection().execute("UPDATE orders SET state = 'lost'")
        one.connection().execute("INSERT INTO orders VALUES ('A3', 'ann', 'new')")
        assert states(one) == "lost,lost,new"
        assert states(two) == states(world) == "paid,sent"
        mine = one.context(CommentInput(id="1", messages=[ViewerMessage("?", viewer="ann")]))["orders"]
        assert mine == [{"order_id": "A1"}, {"order_id": "A3"}]
        with one.sandbox() as fresh:
            assert states(fresh) == "paid,sent"


def test_only_mutable_tables_can_be_written(project):
    with open_world(shop(project)) as world, pytest.raises(sqlite3.OperationalError, match="readonly"):
        world.connection().execute("UPDATE items SET price = 0")


def test_keys_hold_for_writes_too(project):
    with open_world(shop(project)) as world, pytest.raises(sqlite3.IntegrityError):
        world.connection().execute("INSERT INTO orders VALUES ('A1', 'eve', 'paid')")


def test_the_digest_is_the_first_states(project):
    with open_world(shop(project)) as world:
        before = world.digest
        world.connection().execute("DELETE FROM orders")
        assert world.digest == world.sandbox().digest == before


def test_each_thread_has_its_connection_and_sees_the_writes(project):
    with open_world(shop(project)) as world:
        seen: list[object] = []

        def work() -> None:
            world.connection().execute("UPDATE orders SET state = 'gone' WHERE order_id = 'A1'")
            seen.append(world.connection())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert states(world) == "gone,sent"
        assert seen != [world.connection()]
        assert world.connection() is world.connection()


def test_many_threads_write_at_once(project):
    with open_world(shop(project)) as world:

        def work(n: int) -> None:
            for k in range(10):
                world.connection().execute("INSERT INTO orders VALUES (?, 'x', 'y')", [f"{n}-{k}"])

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert world.connection().execute("SELECT count(*) FROM orders").fetchone()[0] == 42


def test_a_closed_world_says_so(project):
    world = open_world(shop(project))
    sandbox = world.sandbox()
    world.close()
    world.close()
    with pytest.raises(StorageError, match="the world is closed"):
        world.connection()
    assert states(sandbox) == "paid,sent"
    sandbox.close()


def test_private_files_go_with_their_owner(project):
    world = open_world(shop(project))
    folder = Path(world.connection().execute("PRAGMA database_list").fetchone()[2]).parent
    sandbox = world.sandbox()
    sandbox.connection()
    assert len(list(folder.glob("[0-9].sqlite"))) == 2
    sandbox.close()
    assert len(list(folder.glob("[0-9].sqlite"))) == 1
    world.close()
    del world, sandbox
    assert not folder.exists()


def test_a_built_file_is_kept_and_used_again(project, monkeypatch):
    manifest = shop(project)
    cache = manifest.parents[2] / "build/worlds"
    with open_world(manifest, cache=cache) as world:
        digest = world.digest
    (kept,) = cache.iterdir()
    monkeypatch.setattr("harnessctl.simulate.world.read_source", lambda *_: pytest.fail("read again"))
    with open_world(manifest, cache=cache) as world:
        assert (world.digest, states(world), world.rows["items"]) == (digest, "paid,sent", 3)
    assert list(cache.iterdir()) == [kept]


def test_a_changed_source_and_a_damaged_file_are_built_anew(project):
    manifest = shop(project)
    cache = manifest.parents[2] / "build/worlds"
    with open_world(manifest, cache=cache) as world:
        digest = world.digest
    (kept,) = cache.iterdir()
    kept.write_bytes(b"SQLite format 3\x00 and then nothing")
    with open_world(manifest, cache=cache) as world:
        assert world.digest == digest
    (manifest.parent / "items.csv").write_text(ITEMS.replace("89", "90"))
    with open_world(manifest, cache=cache) as world:
        assert world.digest != digest
    assert len(list(cache.iterdir())) == 2


def test_sizes_are_known(project):
    with open_world(shop(project)) as world:
        assert world.rows == {"items": 3, "faq": 4, "orders": 2}
        assert world.size_bytes > 4096
        assert world.name == "shop"


def test_a_world_without_mutable_tables(project):
    from world_project import MANIFEST

    with open_world(shop(project, manifest=MANIFEST.replace(", mutable: true", ""))) as world:
        assert states(world) == "paid,sent"
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            world.connection().execute("DELETE FROM orders")


def test_a_world_at_rest_keeps_what_was_written_and_no_connection(project):
    with open_world(shop(project)) as world, world.sandbox() as one:
        before = one.connection()
        before.execute("UPDATE orders SET state = 'lost'")
        one.rest()
        one.rest()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            before.execute("SELECT 1")
        assert states(one) == "lost,lost"
        one.close()
        with pytest.raises(StorageError, match="closed"):
            one.connection()


def test_a_cache_that_cannot_be_written_is_done_without(project, tmp_path):
    manifest = shop(project)
    (tmp_path / "build").write_text("a file, where a folder is wanted")
    with open_world(manifest, cache=tmp_path / "build" / "worlds") as world:
        assert states(world) == "paid,sent"
