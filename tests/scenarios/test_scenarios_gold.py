"""The shipped gold: what else would be right is not scored wrong, and what is said where a tool fails is true."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def families(live_scenarios):
    return {family.spec.id: family for family in live_scenarios("live-stream").families}


def test_every_way_to_a_private_reply_is_private(families, live_bundle):
    """The host answers in private once a tool tagged `personal` was called."""
    personal = {tool.name for tool in live_bundle("live-stream").state.tools if "personal" in tool.tags}
    for family in families.values():
        gold = family.spec.gold
        ways = [gold.calls, *gold.alternatives]
        is_private = [bool(personal & {call.tool for call in way}) for way in ways]
        assert set(is_private) == {gold.route == "private"}, family.spec.id


def test_who_asks_for_the_best_coupon_may_have_no_better_one(families, live_world):
    known = {row["nickname"]: row for row in live_world.read("SELECT * FROM viewers")[1]}
    rows = families["best-coupon"].rows
    assert len({row["viewer"] for row in rows}) > 10
    assert not {known[row["viewer"]]["member_level"] for row in rows} & {"gold"}
    assert not {known[row["viewer"]]["joined"] for row in rows} & {"2026-03-20"}


@pytest.mark.parametrize("family", ["show-next", "show-some-time"])
def test_a_wish_is_for_a_link_that_does_not_wait_already(families, live_world, family):
    _, waiting = live_world.read("SELECT room_id, link_id FROM explain_queue WHERE status = 'waiting'")
    asked = {(row["room"], row["link_id"]) for row in families[family].rows}
    assert asked
    assert not asked & {(row["room_id"], row["link_id"]) for row in waiting}


def test_a_wish_that_could_not_be_queued_is_not_said_to_be(families):
    said = families["show-next"].spec.gold
    done = {
        word
        for family in ("show-next", "show-some-time")
        for word in ("noted", "is in the queue", "comes next", "记下", "排上了")
    }
    assert not [text for texts in said.fallbacks.values() for text in texts for word in done if word in text]


def test_either_of_two_is_an_item_of_the_room(families, live_world):
    _, links = live_world.read("SELECT l.room_id, lower(p.name) || p.name_zh AS name FROM room_links AS l JOIN products AS p USING (product_id)")  # fmt: skip
    for row in families["which-of-two"].rows:
        names = [link["name"] for link in links if link["room_id"] == row["room"]]
        for part in (row["one"], row["two"]):
            words = part.casefold().replace("-", " ").split()
            fits = [name for name in names if all(word in name.replace("-", " ") for word in words)]
            assert fits or part in ("cold brew", "筷子"), (row["room"], part)
