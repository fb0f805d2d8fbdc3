"""Accuracy: each rule broken by itself."""

from __future__ import annotations

from typing import Any

import pytest
from score_cases import WRITES, call, gold, load, look_up, scenario, trajectory

from harnessctl.records.scenario import EndState, Fact, GoldCall
from harnessctl.score.accuracy import accuracy


def judged(given: Any, wanted: Any, **more: Any) -> tuple[float, list[str]]:
    return accuracy(given, scenario(wanted), writes=WRITES, **more)


def test_a_right_answer() -> None:
    assert judged(trajectory(), gold()) == (1.0, [])


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Link 3 is 99 yuan.", "no source has the number 99"),
        ("Link 3 is 129 yuan.", "says 129 where 89 yuan is due"),
        ("Link 3 is 89 yuan, the best in town.", "claims what must not be said: best in town"),
        ("Link 3 is 89 yuan. " + "Have a look. " * 6, "97 characters; at most 80 may be said"),
        ("3号链接是89元。", "is not in the viewer's language, en"),
    ],
)
def test_a_broken_rule_of_the_reply(reply: str, why: str) -> None:
    score, reasons = judged(trajectory(reply), gold(claims=["best in town"]))
    assert score == 0
    assert why in reasons


def test_the_limit_is_the_effective_one() -> None:
    limits = {"max_rounds": 6, "reply_max_chars": 10}
    assert judged(trajectory(limits=limits), gold())[0] == 0
    assert judged(trajectory(limits={"max_rounds": 6}), gold())[0] == 1


@pytest.mark.parametrize("number", ["40", "3", "129"])
def test_numbers_with_a_source(number: str) -> None:
    reply = f"Link 3 is 89 yuan; {number} is right."
    assert judged(trajectory(reply), gold()) == (1.0, [])


def test_small_numbers_are_words() -> None:
    assert judged(trajectory("Link 3 is 89 yuan, for 2 of them ask again."), gold())[0] == 1


def test_a_spoiled_answer_is_no_source() -> None:
    old = call("get_product", {"stale": True, "price": 71}, link_id=3, fault="stale")
    said = judged(trajectory("Link 3 is 71 yuan.", load("item-qa"), old), gold())
    assert said[0] == 0
    assert said[1][0] == "no source has the number 71"


def test_another_value_of_the_same_key() -> None:
    results = {"links": [{"link_id": 3, "price": 89}, {"link_id": 5, "price": 45}]}
    given = trajectory("Link 3, that one is 45.", call("get_product", results, link_id=3))
    wanted = gold(facts=[Fact(any=["89"], source="get_product")])
    assert judged(given, wanted) == (0.0, ["says 45 where 89 is due"])


def test_two_facts_do_not_stand_in_each_others_place() -> None:
    facts = [Fact(any=["89 yuan"]), Fact(any=["45 yuan"])]
    given = trajectory("Link 5 is 45 yuan.")
    score, reasons = judged(given, gold(facts=facts, replies=["3 is 89 yuan, 5 is 45 yuan."]))
    assert (score, reasons) == (1.0, [])


@pytest.mark.parametrize("stop", ["silent", "refused", "round_limit", "deadline", "repeat_detected", "hook_blocked"])
def test_no_reply_where_one_is_due(stop: str) -> None:
    given = trajectory("", stop=stop, route="silent")
    assert judged(given, gold()) == (0.0, [f"the request should have ended `replied`, and ended `{stop}`"])


def test_a_reply_where_silence_is_due() -> None:
    wanted = gold(stop="silent", route="silent", facts=[], calls=[], skills=[])
    assert judged(trajectory(), wanted)[0] == 0
    assert judged(trajectory("", stop="silent", route="silent", tools=[]), wanted) == (1.0, [])


@pytest.mark.parametrize(("said", "due"), [("public", "private"), ("private", "public")])
def test_route(said: str, due: str) -> None:
    assert judged(trajectory(route=said), gold(route=due)) == (0.0, [f"went out {said}, and is {due}"])
    assert judged(trajectory(route=due), gold(route=due))[0] == 1


def test_a_write_that_nobody_asked_for() -> None:
    ticket = call("create_ticket", {"ticket_id": "T1"}, order_id="LS1")
    given = trajectory("Link 3 is 89 yuan.", look_up(), ticket)
    assert judged(given, gold()) == (0.0, ["`create_ticket` changed what nobody asked to change"])
    assert judged(given, gold(optional=[GoldCall(tool="create_ticket", arguments={"order_id": "LS1"})]))[0] == 1
    blocked = call("create_ticket", status="blocked", order_id="LS1")
    assert judged(trajectory("Link 3 is 89 yuan.", look_up(), blocked), gold())[0] == 1


def test_a_write_made_twice() -> None:
    ticket = call("create_ticket", {"ticket_id": "T1"}, order_id="LS1")
    wanted = gold(calls=[GoldCall(tool="create_ticket", arguments={"order_id": "LS1"})], facts=[], replies=[])
    assert judged(trajectory("It is open.", ticket), wanted)[0] == 1
    assert judged(trajectory("It is open.", ticket, ticket), wanted)[0] == 0


def test_end_state() -> None:
    wanted = gold(end_state=[EndState(table="tickets", where={"order_id": "LS1"}, values={"kind": "Return"})])
    assert judged(trajectory(), wanted, after={"tickets": [{"order_id": "LS1", "kind": "return", "id": 7}]}) == (
        1.0,
        [],
    )
    score, reasons = judged(trajectory(), wanted, after={"tickets": [{"order_id": "LS1", "kind": "repair"}]})
    assert score == 0
    assert reasons == ['table tickets has no row {"order_id":"LS1","kind":"Return"}']
    assert judged(trajectory(), wanted, after={})[0] == 0


def test_end_state_with_an_absent_row() -> None:
    wanted = gold(end_state=[EndState(table="carts", where={"viewer": "mo"}, absent=True)])
    assert judged(trajectory(), wanted, after={"carts": [{"viewer": "li"}]})[0] == 1
    assert judged(trajectory(), wanted, after={"carts": [{"viewer": "mo"}]})[0] == 0


def test_an_end_state_that_was_not_looked_at_is_named() -> None:
    wanted = gold(end_state=[EndState(table="tickets", where={"order_id": "LS1"})])
    assert judged(trajectory(), wanted) == (1.0, ["the end state was not judged: no tables were given"])


def test_a_write_that_was_lost_is_nobodys_fault() -> None:
    wanted = gold(
        calls=[GoldCall(tool="create_ticket", arguments={"order_id": "LS1"})], facts=[], route="private", replies=[],
        end_state=[EndState(table="tickets", where={"order_id": "LS1"})],
    )  # fmt: skip
    lost = [call("create_ticket", status="timeout", fault="timeout", at=at, order_id="LS1") for at in (1, 2)]
    score, reasons = judged(trajectory("Please open the order page.", *lost), wanted, after={"tickets": []})
    assert score == 1
    assert reasons == ["the end state was not judged: a call that it takes was lost to a fault"]
    assert judged(trajectory("Please open the order page.", lost[0]), wanted, after={"tickets": []})[0] == 0
