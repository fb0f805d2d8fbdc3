"""check_scenarios: what the oracle cannot reach, and what stands in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnessctl.bundle.state import Block, Prompt
from harnessctl.records.scenario import EndState, Fact
from harnessctl.simulate.checking import Unreached, check_scenarios
from harnessctl.simulate.end_state import table_rows
from harnessctl.simulate.world import LiveWorld, open_world
from tests.oracle.oracle_shop import AUTHENTICATE, bundle, call, changed, hook, price, scenario, state

WORLD = """\
apiVersion: harnessctl/v1
kind: World
name: shop
version: 1.0.0
tables:
  orders: {file: orders.csv, key: [order_id], mutable: true}
  notes: {file: notes.jsonl, key: [note_id], types: {tags: json}}
"""
CANCEL = """
def cancel_order(order_id, ctx):
    ctx.world.connection().execute("UPDATE orders SET status = 'cancelled' WHERE order_id = ?", (order_id,))
    return {"order_id": order_id}
"""


@pytest.fixture
def world(tmp_path: Path):
    (tmp_path / "orders.csv").write_text("order_id,status\nA17,paid\nA18,paid\n")
    (tmp_path / "notes.jsonl").write_text('{"note_id": 1, "tags": ["a"]}\n')
    (tmp_path / "shop.yaml").write_text(WORLD)
    with open_world(tmp_path / "shop.yaml") as opened:
        yield opened


def checked(world: LiveWorld, *scenarios, hooks=(), **fields) -> list[Unreached]:
    of = changed(state(*hooks), **fields)
    of.code["shop"] += CANCEL
    return check_scenarios(bundle(of), world, scenarios)


def one(world: LiveWorld, what, hooks=(), **fields) -> Unreached:
    (found,) = checked(world, what, hooks=hooks, **fields)
    return found


def test_nothing_is_listed_where_gold_is_reached(world):
    silent = scenario(id="s2", skills=[], calls=[call("stay_silent")], stop="silent", replies=[])
    cancelled = scenario(
        "A17", id="s3", calls=[call("cancel_order", order_id="A17")],
        end_state=[EndState(table="orders", where={"order_id": "A17"}, values={"status": "cancelled"})],
    )  # fmt: skip
    told: list[str] = []
    of = state()
    of.code["shop"] += CANCEL
    found = check_scenarios(
        bundle(of), world, [price(), silent, cancelled], on_done=lambda s, t: told.append(f"{s.id} {t and t.stop}")
    )
    assert found == []
    assert told == ["s1 replied", "s2 silent", "s3 replied"]
    assert {row["status"] for row in table_rows(world, cancelled.gold.end_state)["orders"]} == {"paid"}


def test_a_blocked_plan_names_the_hook_and_the_call(world):
    found = one(world, scenario(calls=[call("get_order", order_id="A17")]), hooks=[AUTHENTICATE])
    assert (found.what, found.by, found.call) == ("plan", "authenticate", 'get_order({"order_id":"A17"})')
    assert found.render() == (
        's1 (price): plan get_order({"order_id":"A17"}): authenticate: a tool tagged auth must be called first, and '
        "cannot be: find_user: `email` is not known"
    )


def test_an_id_that_is_not_there_is_named_with_the_tools_error(world):
    found = one(world, price(calls=[call("get_product", link_id=99)]))
    assert (found.what, found.by, found.call) == ("call", "tool:error", 'get_product({"link_id":99})')
    assert "KeyError: 99" in found.reason


def test_a_call_that_a_hook_blocks_in_the_run_names_the_hook(world):
    listed = hook("listed", "pre_tool", {"expr": "context.link == 1"}, when={"tools": ["show_card"]})
    found = one(world, scenario(calls=[call("show_card", link_id=1)]), hooks=[listed])
    assert (found.what, found.by) == ("call", "listed")


def test_a_denied_call_is_right_where_nothing_rests_on_it(world):
    what = scenario("A9", calls=[call("get_order", order_id="A9")])
    assert checked(world, what) == []
    what.gold.facts = [Fact(any=["paid"], source="get_order")]
    assert one(world, what).by == "tool:denied"


def test_a_reply_that_a_hook_keeps_back_names_the_hook(world):
    kind = hook("kind", "stop", {"python": "manners:check"}, text=["Be kind."])
    code = state().code | {"manners": "def check(names):\n    return 'dear' in names['reply']"}
    found = one(world, price(), hooks=[kind], code=code)
    assert (found.what, found.by) == ("reply", "kind")
    assert "it ended `hook_blocked`, not `replied`" in found.reason


def test_another_reply_than_golds_is_found_out(world):
    kind = hook("kind", "stop", {"python": "manners:check"}, "retry", max_retries=5, text=["Say no price."])
    code = state().code | {"manners": "def check(names):\n    return 'yuan' not in names['reply']"}
    found = one(world, price(), hooks=[kind], code=code)
    assert (found.what, found.by) == ("reply", "kind")
    assert "no reply of gold went out" in found.reason


def test_another_route_is_found_out(world):
    found = one(world, price(route="private"))
    assert (found.what, found.reason) == ("route", "the reply went out public, not private")


def test_another_end_state_is_found_out(world):
    end = EndState(table="orders", where={"order_id": "A18"}, values={"status": "cancelled"})
    found = one(world, scenario("A17", calls=[call("cancel_order", order_id="A17")], end_state=[end]))
    assert (found.what, "A18" in found.reason) == ("end-state", True)


def test_a_prompt_that_cannot_be_made_is_found_out(world):
    found = one(world, price(), prompt=Prompt(blocks=[Block(id="base", template="{{ room.name }}")]))
    assert found.what == "reply"
    assert "room" in found.reason


def test_rows_are_as_the_tables_are_now(world):
    ends = [EndState(table="orders", where={}), EndState(table="notes", where={}), EndState(table="gone", where={})]
    with world.sandbox() as sandbox:
        sandbox.connection().execute("UPDATE orders SET status = 'sent' WHERE order_id = 'A17'")
        assert table_rows(sandbox, ends) == {
            "orders": [{"order_id": "A17", "status": "sent"}, {"order_id": "A18", "status": "paid"}],
            "notes": [{"note_id": 1, "tags": ["a"]}],
            "gone": [],
        }
