"""A real tool-and-policy harness in these formats: gold action lists reach the end state that they should."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harnessctl.bundle import read_bundle
from harnessctl.compile import compile_project
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from harnessctl.simulate.world import LiveWorld, open_world
from tests.retail.gold import WRITES, expected, usable

HERE = Path(__file__).parent
TASKS = 20


@pytest.fixture(scope="module")
def retail(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    root = tmp_path_factory.mktemp("retail") / "project"
    shutil.copytree(HERE / "project", root)
    shutil.copy(shared_data / "tau2_retail" / "db.json", root / "manifests" / "worlds" / "db.json")
    return root


@pytest.fixture(scope="module")
def database(shared_data: Path) -> dict[str, Any]:
    return json.loads((shared_data / "tau2_retail" / "db.json").read_text())


@pytest.fixture(scope="module")
def tasks(shared_data: Path) -> list[dict[str, Any]]:
    found = json.loads((shared_data / "tau2_retail" / "tasks_train.json").read_text())
    return [task for task in found if usable(task)][:TASKS]


@pytest.fixture(scope="module")
def bundle(retail: Path):
    return read_bundle(compile_project(retail).bundles[0].path)


@pytest.fixture(scope="module")
def opened(retail: Path) -> Iterator[LiveWorld]:
    with open_world(retail / "manifests" / "worlds" / "retail.yaml") as world:
        yield world


@pytest.fixture
def world(opened: LiveWorld) -> Iterator[LiveWorld]:
    """A shop in which nothing has been changed yet."""
    with opened.sandbox() as sandbox:
        yield sandbox


def call(name: str, arguments: dict[str, Any]) -> ScriptedReply:
    return ScriptedReply(tool_calls=[ScriptedCall(name, arguments)])


def turns(actions: list[dict[str, Any]]) -> list[list[ScriptedReply]]:
    """Two turns: look up and ask for a yes; change."""
    first_write = next(i for i, action in enumerate(actions) if action["name"] in WRITES)
    calls = [call(action["name"], action["arguments"]) for action in actions]
    return [
        [call("load_skill", {"skill": "look-up"}), *calls[:first_write], ScriptedReply(content="Shall I do that?")],
        [call("load_skill", {"skill": "change-order"}), *calls[first_write:], ScriptedReply(content="It is done.")],
    ]


def carry_out(bundle, world, replies: list[ScriptedReply], texts: list[str]):
    async def go():
        async with await Agent.open(bundle, ScriptedModel(replies), world=world, limits={"deadline_s": 60}) as agent:
            return [
                await agent.run(CommentInput(id=f"t{number}", text=text, session="s"))
                for number, text in enumerate(texts)
            ]

    return asyncio.run(go())


def rows(world: LiveWorld, table: str, key: str, ids: list[str]) -> dict[str, dict[str, Any]]:
    out = {}
    for wanted in ids:
        cursor = world.connection().execute(f"SELECT * FROM {table} WHERE {key} = ?", (wanted,))
        names = [column[0] for column in cursor.description]
        row = dict(zip(names, tuple(cursor.fetchone()), strict=True))
        out[wanted] = {
            name: json.loads(value) if isinstance(value, str) and value[:1] in "[{" else value
            for name, value in row.items()
            if value is not None
        }
    return out


def test_there_are_twenty_lists(tasks):
    assert len(tasks) == TASKS
    assert sum(len(t["evaluation_criteria"]["actions"]) for t in tasks) >= 80


@pytest.mark.parametrize("number", range(TASKS))
def test_gold_actions_reach_the_end_state(number, bundle, world, database, tasks):
    task = tasks[number]
    actions = task["evaluation_criteria"]["actions"]
    first, second = turns(actions)
    looked_up, changed = carry_out(bundle, world, [*first, *second], ["I need a change.", "Yes, please."])
    assert (looked_up.stop, changed.stop) == ("replied", "replied"), (looked_up.error, changed.error)
    done = [c for t in (looked_up, changed) for c in t.tools if c.name != "load_skill"]
    assert [(c.name, c.arguments) for c in done] == [(a["name"], a["arguments"]) for a in actions]
    assert [(c.name, c.error) for c in done if c.status != "ok"] == []
    after = expected(database, actions)
    assert after["orders"] or after["users"]
    assert rows(world, "orders", "order_id", list(after["orders"])) == after["orders"]
    assert rows(world, "users", "user_id", list(after["users"])) == after["users"]


def first_write(tasks) -> tuple[dict[str, Any], dict[str, Any]]:
    actions = tasks[0]["evaluation_criteria"]["actions"]
    return actions[0], next(a for a in actions if a["name"] in WRITES)


def test_a_write_before_authentication_is_blocked(bundle, world, tasks):
    _, write = first_write(tasks)
    replies = [
        call("load_skill", {"skill": "change-order"}),
        call(write["name"], write["arguments"]),
        ScriptedReply(content="Who are you?"),
    ]
    (record,) = carry_out(bundle, world, replies, ["Yes, do it."])
    assert record.tools[-1].status == "blocked"
    assert "`find_user_id_by_email`" in record.messages[-2]["content"]


def test_a_write_before_a_yes_is_blocked_and_nothing_changes(bundle, world, database, tasks):
    find, write = first_write(tasks)
    replies = [
        call("load_skill", {"skill": "change-order"}),
        call(find["name"], find["arguments"]),
        call(write["name"], write["arguments"]),
        ScriptedReply(content="Shall I?"),
    ]
    (record,) = carry_out(bundle, world, replies, ["Exchange it."])
    assert [c.status for c in record.tools] == ["ok", "ok", "blocked"]
    order = write["arguments"]["order_id"]
    assert rows(world, "orders", "order_id", [order])[order]["status"] == database["orders"][order]["status"]


def test_another_customers_order_is_denied(bundle, world, database, tasks):
    find, _ = first_write(tasks)
    mine = rows(
        world,
        "users",
        "user_id",
        [u for u in database["users"] if u.startswith(find["arguments"].get("first_name", "").lower())],
    )
    other = next(o for o, order in database["orders"].items() if order["user_id"] not in mine)
    replies = [
        call("load_skill", {"skill": "look-up"}),
        call(find["name"], find["arguments"]),
        call("get_order_details", {"order_id": other}),
        ScriptedReply(content="I cannot tell."),
    ]
    (record,) = carry_out(bundle, world, replies, ["What is in it?"])
    assert record.tools[-1].status == "denied"


def test_authentication_holds_for_the_session_and_not_beyond(bundle, world, tasks):
    find, _ = first_write(tasks)
    order = next(
        a["arguments"]["order_id"] for a in tasks[0]["evaluation_criteria"]["actions"] if "order_id" in a["arguments"]
    )
    replies = [
        call("load_skill", {"skill": "look-up"}),
        call(find["name"], find["arguments"]),
        ScriptedReply(content="Hello."),
        call("get_order_details", {"order_id": order}),
        ScriptedReply(content="It is on its way."),
    ]
    _, second = carry_out(bundle, world, replies, ["Hello", "And my order?"])
    assert second.tools[-1].status == "ok"
    (alone,) = carry_out(bundle, world, [call("load_skill", {"skill": "look-up"}), *replies[3:]], ["And my order?"])
    assert alone.tools[-1].status == "blocked"
