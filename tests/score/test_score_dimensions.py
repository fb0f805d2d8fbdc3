"""Effectiveness, Tool Rationality, Skill Selection: each rule by itself."""

from __future__ import annotations

from typing import Any

import pytest
from score_cases import WRITES, call, gold, load, look_up, scenario, trajectory

from harnessctl.records.scenario import Fact, Gold, GoldCall
from harnessctl.score.effectiveness import effectiveness
from harnessctl.score.skill_selection import skill_selection
from harnessctl.score.tool_rationality import tool_rationality

TWO_FACTS = [Fact(any=["89 yuan"], source="get_product"), Fact(any=["in stock", "left"], source="get_product")]


def effect(given: Any, wanted: Gold) -> float:
    return effectiveness(given, scenario(wanted))[0]


def tools(wanted: Gold, *made: Any) -> float:
    return tool_rationality(trajectory("x", tools=list(made)), scenario(wanted), writes=WRITES)[0]


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("89 yuan and in stock", 1),
        ("it is 89 yuan", 0.5),
        ("some are left", 0.5),
        ("have a look", 0),
        ("", 0),
        ("  ", 0),
    ],
)
def test_facts_said(reply: str, score: float) -> None:
    assert effect(trajectory(reply), gold(facts=TWO_FACTS)) == score


def test_what_is_not_said_is_named() -> None:
    _, reasons = effectiveness(trajectory("it is 89 yuan"), scenario(gold(facts=TWO_FACTS)))
    assert reasons == ["not said: in stock"]


def test_no_fact_due() -> None:
    talk = gold(facts=[], calls=[], replies=["Welcome!"])
    assert effect(trajectory("Hello there"), talk) == 1
    assert effect(trajectory(""), talk) == 0


def test_a_question_back() -> None:
    ask = gold(facts=[], calls=[], replies=["Which link?", "Do you mean 3 or 5?"])
    assert effect(trajectory("Which one do you mean?"), ask) == 1
    assert effect(trajectory("你想问哪一款"), ask) == 1
    assert effect(trajectory("It is lovely."), ask) == 0
    assert effect(trajectory("It is lovely."), gold(facts=[], replies=["Which link?", "Tell me the number."])) == 1


@pytest.mark.parametrize("stop", ["silent", "refused", "hook_blocked"])
def test_another_ending_is_due(stop: str) -> None:
    wanted = gold(stop=stop, facts=[], calls=[], skills=[])
    assert effect(trajectory("", stop=stop), wanted) == 1
    assert effect(trajectory("Hello"), wanted) == 0


def spoiled(*, status: str = "timeout", at: int = 1, **arguments: Any) -> Any:
    return call("get_product", status=status, at=at, fault="timeout", **(arguments or {"link_id": 3}))


def test_facts_of_a_source_that_failed_for_good_are_waived() -> None:
    given = trajectory("Please tap link 3.", spoiled(), spoiled(at=2))
    assert effect(given, gold()) == 1
    assert effect(trajectory("", spoiled(), spoiled(at=2)), gold()) == 0


def test_a_fault_that_was_not_tried_again_waives_nothing() -> None:
    assert effect(trajectory("Please tap link 3.", spoiled()), gold()) == 0


def test_a_denial_and_the_last_round_need_no_second_try() -> None:
    assert effect(trajectory("Please tap link 3.", spoiled(status="denied")), gold()) == 1
    assert effect(trajectory("Please tap link 3.", spoiled(at=5)), gold()) == 1


def test_a_failure_of_the_tools_own_waives_nothing() -> None:
    failed = [call("get_product", status="error", at=at, link_id=3) for at in (1, 2)]
    assert effect(trajectory("Please tap link 3.", *failed), gold()) == 0


def test_a_fault_that_passed_leaves_the_facts_due() -> None:
    given = trajectory("Please tap link 3.", spoiled(), look_up(at=2))
    assert effect(given, gold()) == 0
    assert effect(trajectory("It is 89 yuan.", spoiled(), look_up(at=2)), gold()) == 1


def test_only_the_lost_call_waives() -> None:
    facts = [Fact(any=["89 yuan"], source="get_product"), Fact(any=["45 yuan"], source="get_product")]
    made = [look_up(), spoiled(link_id=5), spoiled(link_id=5, at=2)]
    assert effect(trajectory("3 is 89 yuan; tap link 5.", *made), gold(facts=facts)) == 1
    assert effect(trajectory("tap link 3; tap link 5.", *made), gold(facts=facts)) == 0


def test_facts_behind_a_lost_prelude_are_waived() -> None:
    wanted = gold(
        prelude=[GoldCall(tool="get_order", arguments={"order_id": "LS1"})],
        calls=[GoldCall(tool="create_ticket", arguments={"order_id": "LS1"})],
        facts=[Fact(any=["T9"], source="create_ticket")],
    )
    lost = [call("get_order", status="timeout", at=at, fault="timeout", order_id="LS1") for at in (1, 2)]
    assert effect(trajectory("Please open the order page.", *lost), wanted) == 1
    assert tools(wanted, *lost) == 1
    assert tools(wanted) == 0


def test_facts_behind_a_lost_call_of_gold_are_waived() -> None:
    order, ticket = (GoldCall(tool=name, arguments={"order_id": "LS1"}) for name in ("get_order", "create_ticket"))
    wanted = gold(calls=[order, ticket], facts=[Fact(any=["T9"], source="create_ticket")])
    lost = [call("get_order", status="timeout", at=at, fault="timeout", order_id="LS1") for at in (1, 2)]
    assert effect(trajectory("Please open the order page.", *lost), wanted) == 1
    assert tools(wanted, *lost) == 1
    last = [call("create_ticket", status="timeout", at=at, fault="timeout", order_id="LS1") for at in (1, 2)]
    assert tools(wanted, *last) == 1 / 2


def test_a_fallback_of_gold_is_right_where_a_call_was_lost() -> None:
    facts = [Fact(any=["89 yuan"], source="get_product"), Fact(any=["45 yuan"], source="get_product")]
    wanted = gold(facts=facts, fallbacks=["Please tap links 3 and 5."])
    made = [look_up(), spoiled(link_id=5), spoiled(link_id=5, at=2)]
    assert effect(trajectory("please tap links 3 and 5.", *made), wanted) == 1
    assert effect(trajectory("please tap links 3 and 5.", look_up()), wanted) == 0


def test_right_calls() -> None:
    assert tools(gold(), load("item-qa"), look_up()) == 1
    assert tools(gold(calls=[])) == 1


@pytest.mark.parametrize(
    ("made", "score"),
    [
        ([], 0),
        ([look_up(), look_up()], 1 / 2),
        ([look_up(), call("search_faq", [], query="price")], 1 / 2),
        ([call("get_product", {}, link_id=5)], 0),
        ([call("get_product", status="invalid", link_id="x"), look_up()], 1 / 2),
        ([call("get_product", status="blocked", link_id=3), look_up()], 1 / 2),
        ([call("no_such_tool", status="invalid"), look_up()], 1 / 2),
        ([look_up(fault="timeout", status="timeout"), look_up()], 1),
        ([look_up(fault="timeout", status="timeout")], 1),
        ([look_up(fault="stale"), look_up()], 1),
        ([look_up(fault="timeout", status="timeout"), look_up(), look_up()], 1 / 2),
        ([load("item-qa"), load("chat"), load("nothing", status="invalid"), look_up()], 1),
    ],
)
def test_calls_of_a_price_question(made: list[Any], score: float) -> None:
    assert tools(gold(), *made) == pytest.approx(score)


def test_no_call_due() -> None:
    assert tools(gold(calls=[]), look_up()) == 1 / 2
    assert tools(gold(calls=[]), look_up(), call("search_faq", query="x")) == pytest.approx(1 / 3)


def test_compared_arguments() -> None:
    wanted = gold(calls=[GoldCall(tool="search_faq", arguments={"query": "size", "topic": "Shoes"}, compare=["topic"])])
    assert tools(wanted, call("search_faq", query="how big", topic="shoes ")) == 1
    assert tools(wanted, call("search_faq", query="size", topic="hats")) == 0
    assert tools(gold(calls=[GoldCall(tool="search_faq", compare=[])]), call("search_faq", query="anything")) == 1


@pytest.mark.parametrize(("made", "due", "equal"), [(3, 3.0, True), (1, True, False), ("A b", "a  B", True), ([1, 2], [2, 1], False), ({"a": 1}, {"a": 1.0}, True), ("3", 3, False), (None, None, True)])  # fmt: skip
def test_equal_values(made: Any, due: Any, equal: bool) -> None:
    assert (tools(gold(calls=[GoldCall(tool="t", arguments={"x": due})]), call("t", x=made)) == 1) is equal


def test_optional_calls_and_the_prelude_cost_nothing_once() -> None:
    extra = [call("search_faq", query="x"), call("get_queue")]
    wanted = gold(optional=[GoldCall(tool="search_faq", compare=[])], prelude=[GoldCall(tool="get_queue")])
    assert tools(wanted, *extra, look_up()) == 1
    assert tools(wanted, *extra, *extra, look_up()) == pytest.approx(1 / 3)


def test_an_alternative_stands_for_the_calls() -> None:
    wanted = gold(alternatives=[[GoldCall(tool="check_stock", arguments={"link_id": 3})]])
    assert tools(wanted, call("check_stock", link_id=3)) == 1
    assert tools(wanted, call("check_stock", link_id=3), look_up()) == 1 / 2


def test_order_counts_before_a_write() -> None:
    order = GoldCall(tool="get_order", arguments={"order_id": "LS1"})
    ticket = GoldCall(tool="create_ticket", arguments={"order_id": "LS1"})
    made = [call("get_order", order_id="LS1"), call("create_ticket", order_id="LS1")]
    assert tools(gold(calls=[order, ticket]), *made) == 1
    assert tools(gold(calls=[order, ticket]), *reversed(made)) == 3 / 4
    assert tools(gold(calls=[ticket, order]), *made) == 1


@pytest.mark.parametrize(
    ("due", "loaded", "score"),
    [
        (["item-qa"], ["item-qa"], 1),
        (["item-qa"], ["item-qa", "low-stock-nudge"], 1),
        (["item-qa"], ["item-qa", "synthetic-1"], 1 / 2),
        (["item-qa"], ["live-chat"], 0),
        (["item-qa"], [], 0),
        (["item-qa", "faq"], ["item-qa"], 1 / 2),
        ([], [], 1),
        ([], ["item-qa"], 1 / 2),
    ],
)
def test_skills(due: list[str], loaded: list[str], score: float) -> None:
    given = trajectory(skills=loaded)
    assert skill_selection(given, scenario(gold(skills=due, strategies=["low-stock-nudge"])))[0] == score


def test_a_skill_that_there_is_not() -> None:
    given = trajectory("x", load("old-name", status="invalid"), load("item-qa"), look_up())
    assert skill_selection(given, scenario(gold()))[0] == 1 / 2


def test_a_loop_without_skills_has_no_score() -> None:
    assert skill_selection(trajectory(loop="react"), scenario(gold()))[0] is None
