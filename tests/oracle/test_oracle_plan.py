"""Plans: gold completed from the hooks' demands, grouped into rounds, or refused with what stands in the way."""

from __future__ import annotations

import pytest

from harnessctl.records.scenario import GoldCall
from harnessctl.simulate.plan import Plan, PlanBlocked, complete
from tests.oracle.oracle_shop import (
    AUTHENTICATE,
    NUMBERS,
    ORDER_FIRST,
    PRICE_LOOKED_UP,
    SHORT,
    call,
    changed,
    hook,
    price,
    scenario,
    skill,
    state,
)

MIRA = {"email": "mira@example.com"}


def rounds(plan: Plan) -> list[list[str]]:
    return [[step.tool for step in group] for group in plan.rounds]


def blocked(what, *hooks, **limits) -> PlanBlocked:
    with pytest.raises(PlanBlocked) as caught:
        complete(what, state(*hooks, **limits))
    return caught.value


def test_look_ups_stand_beside_the_skill_and_a_write_alone():
    what = scenario(
        calls=[call("get_product", link_id=1), call("check_stock", link_id=1), call("show_card", link_id=1)]
    )
    plan = complete(what, state())
    assert rounds(plan) == [["load_skill", "get_product", "check_stock"], ["show_card"]]
    assert (plan.skills, plan.min_rounds, plan.ends) == (["item"], 2, False)


def test_one_call_a_message_where_the_harness_runs_one_at_a_time():
    what = scenario(calls=[call("get_product", link_id=1), call("check_stock", link_id=1)])
    assert rounds(complete(what, state(max_parallel_tools=1))) == [["load_skill"], ["get_product"], ["check_stock"]]


def test_an_identifier_that_nobody_told_waits_for_the_look_up_before_it():
    what = scenario("Where is my parcel?", calls=[call("search", query="parcel"), call("get_order", order_id="A17")])
    assert rounds(complete(what, state())) == [["load_skill", "search"], ["get_order"]]
    told = scenario("Where is A17?", calls=[call("search", query="parcel"), call("get_order", order_id="A17")])
    assert rounds(complete(told, state())) == [["load_skill", "search", "get_order"]]


def test_who_is_asking_is_found_first_from_what_is_known():
    what = scenario("Where is A17?", calls=[call("get_order", order_id="A17")], known=MIRA)
    plan = complete(what, state(AUTHENTICATE))
    assert rounds(plan) == [["load_skill", "find_user"], ["get_order"]]
    (prelude,) = [step for step in plan.steps if step.why == "prelude"]
    assert (prelude.arguments, prelude.hook) == (MIRA, "authenticate")


def test_what_is_demanded_has_demands_of_its_own():
    what = scenario(calls=[call("cancel_order", order_id="A17")], known=MIRA)
    plan = complete(what, state(ORDER_FIRST, AUTHENTICATE))
    assert [step.tool for step in plan.steps] == ["load_skill", "find_user", "get_order", "cancel_order"]
    assert plan.steps[2].arguments == {"order_id": "A17"}


def test_a_call_that_gold_makes_later_is_made_earlier_and_once():
    what = scenario("A17", calls=[call("cancel_order", order_id="A17"), call("get_order", order_id="A17")])
    plan = complete(what, state(ORDER_FIRST))
    assert [(step.tool, step.why) for step in plan.steps[1:]] == [("get_order", "gold"), ("cancel_order", "gold")]


def test_the_prelude_of_gold_is_taken_where_a_hook_asks_for_it_and_only_there():
    what = scenario(calls=[call("get_order", order_id="A17")], prelude=[call("find_user", email="m@example.com")])
    assert complete(what, state(AUTHENTICATE)).steps[1].arguments == {"email": "m@example.com"}
    assert "find_user" not in [step.tool for step in complete(what, state()).steps]


def test_a_reply_that_a_hook_wants_a_call_for_brings_the_call():
    what = scenario(replies=["It is 189 yuan."], known={"link_id": 1})
    plan = complete(what, state(PRICE_LOOKED_UP))
    assert rounds(plan) == [["load_skill", "get_product"]]
    assert plan.steps[1].hook == "price-looked-up"


def test_a_wording_that_wants_no_call_is_preferred():
    what = scenario(replies=["It is 189 yuan.", "The link shows it."], known={"link_id": 1})
    plan = complete(what, state(PRICE_LOOKED_UP))
    assert (rounds(plan), plan.replies) == ([["load_skill"]], ("The link shows it.",))


def test_wordings_beyond_the_limit_are_left_out():
    what = scenario(replies=["Short.", "Much too long to be said." * 4], fallbacks=["x" * 61, "See the link."])
    plan = complete(what, state(SHORT))
    assert (plan.replies, plan.fallbacks) == (("Short.",), ("See the link.",))


def test_what_hangs_on_results_is_left_to_the_run():
    expr = hook("listed", "pre_tool", {"expr": "calls('search', ok=true) | length > 0"}, when={"tools": ["show_card"]})
    what = scenario(calls=[call("show_card", link_id=1)], replies=["It is 189 yuan."])
    assert rounds(complete(what, state(expr, NUMBERS))) == [["load_skill"], ["show_card"]]


def test_the_first_alternative_that_can_be_planned_stands_in():
    what = scenario(calls=[call("get_order", order_id="A17")], alternatives=[[call("get_product", link_id=1)]])
    assert rounds(complete(what, state(AUTHENTICATE))) == [["load_skill", "get_product"]]


def test_few_rounds_put_calls_into_one_message():
    what = scenario(calls=[call("get_product", link_id=1), call("show_card", link_id=1), call("show_card", link_id=2)])
    assert rounds(complete(what, state(max_rounds=3))) == [["load_skill", "get_product"], ["show_card", "show_card"]]
    assert rounds(complete(what, state(max_rounds=2))) == [["load_skill", "get_product", "show_card", "show_card"]]


def test_a_call_that_ends_the_request_needs_no_round_for_a_reply():
    plan = complete(scenario(skills=[], calls=[call("stay_silent")], stop="silent", replies=[]), state(max_rounds=1))
    assert (rounds(plan), plan.ends, plan.min_rounds) == ([["stay_silent"]], True, 1)


def test_a_skill_that_a_hook_wants_is_loaded():
    check = {"skill_loaded": {"skill": "nudge"}}
    nudged = hook("nudged", "pre_tool", check, when={"tools": ["show_card"]})
    what = scenario(calls=[call("show_card", link_id=1)])
    assert complete(what, state(nudged)).skills == ["item", "nudge"]
    everywhere = hook("nudged", "pre_tool", check)
    error = blocked(what, everywhere)
    assert (error.hook, error.call and error.call.tool) == ("nudged", "load_skill")


def test_a_warning_demands_nothing():
    check = {"tool_called": {"tools": ["search"]}}
    assert rounds(complete(scenario(), state(hook("searched", "stop", check, "warn")))) == [["load_skill"]]


def test_blocked_where_nothing_known_fills_the_call():
    error = blocked(scenario(calls=[call("get_order", order_id="A17")]), AUTHENTICATE)
    assert error.hook == "authenticate"
    assert error.call is not None
    assert error.call.tool == "get_order"
    assert "find_user: `email` is not known" in error.message


def test_blocked_by_a_text_that_is_as_it_is():
    yes = hook(
        "confirm", "pre_tool", {"regex": {"target": "message", "must": "yes please"}}, when={"effects": ["write"]}
    )
    error = blocked(scenario(calls=[call("show_card", link_id=1)]), yes)
    assert (error.hook, error.call and error.call.tool) == ("confirm", "show_card")


def test_blocked_by_a_hook_that_allows_no_further_call():
    once = hook("once", "pre_tool", {"tool_called": {"tools": ["show_card"], "ok": True, "min": 0, "max": 0}},
                when={"tools": ["show_card"]})  # fmt: skip
    error = blocked(scenario(calls=[call("show_card", link_id=1), call("show_card", link_id=2)]), once)
    assert error.hook == "once"
    assert error.call is not None
    assert error.call.arguments == {"link_id": 2}
    assert "at most 0" in error.reason


def test_blocked_where_hooks_demand_each_other():
    one = hook("one", "pre_tool", {"tool_called": {"tools": ["search"]}}, when={"tools": ["get_product"]})
    two = hook("two", "pre_tool", {"tool_called": {"tools": ["get_product"]}}, when={"tools": ["search"]})
    error = blocked(scenario(calls=[call("get_product", link_id=1)], known={"query": "pan"}), one, two)
    assert "each other" in error.message or "search" in error.message


def test_blocked_by_a_hook_that_lets_nothing_through():
    closed = hook("closed", "pre_tool", None, when={"tools": ["show_card"]})
    assert blocked(scenario(calls=[call("show_card", link_id=1)]), closed).hook == "closed"


def test_a_hook_that_refuses_the_first_call_alone_wants_nothing_before_it():
    lucky = hook("lucky", "pre_tool", {"tool_called": {"tools": ["get_product"]}}, when={"tools": ["get_product"]})
    assert rounds(complete(price(), state(lucky))) == [["load_skill", "get_product"]]


def test_a_hook_that_only_asks_again_lets_through():
    again = hook("again", "pre_tool", None, "retry", max_retries=1, exhausted="warn", when={"tools": ["show_card"]})
    assert rounds(complete(scenario(calls=[call("show_card", link_id=1)]), state(again)))[1] == ["show_card"]


@pytest.mark.parametrize(
    ("gold", "part", "reason"),
    [
        ({"calls": [call("sing")]}, "tool", "there is no tool `sing`"),
        ({"calls": [GoldCall(tool="get_product", arguments={"link_id": "one"})]}, "tool", "do not fit"),
        ({"skills": ["item", "sing"]}, "skill", "`sing` is not on offer"),
        ({"skills": ["nudge"]}, "skill", "requires a reply skill"),
        ({"replies": []}, "gold", "no reply"),
        ({"replies": ["x" * 61]}, "short", "61 characters; at most 60"),
    ],
)
def test_blocked_by_gold_itself(gold, part, reason):
    error = blocked(scenario(**gold), SHORT)
    assert error.hook == part
    assert reason in error.message


def test_blocked_by_too_few_rounds_and_too_few_calls():
    what = scenario("a", calls=[call("find_user", email="a"), call("get_order", order_id="A17")])
    error = blocked(what, AUTHENTICATE, max_rounds=2)
    assert (error.hook, error.reason) == ("limit", "it takes 3 rounds; max_rounds is 2")
    assert "max_tool_calls is 3" in blocked(what, max_tool_calls=3).message


def test_blocked_without_gold():
    what = price()
    what.gold = None
    assert blocked(what).hook == "gold"


def test_a_masked_skill_is_missed_only_by_who_needs_it():
    of = changed(state(), skills=[skill("orders"), skill("chat")])
    with pytest.raises(PlanBlocked, match="`item` is not on offer"):
        complete(price(), of)
    assert complete(price(skills=["orders"]), of).skills == ["orders"]


def test_an_identifier_is_guessed_where_the_rounds_are_too_few_to_hear_it():
    what = scenario("parcel?", calls=[call("search", query="parcel"), call("get_order", order_id="A17")])
    assert rounds(complete(what, state(max_rounds=2))) == [["load_skill", "search", "get_order"]]


def test_what_a_hook_demands_before_a_skill_is_loaded_stands_before_it():
    who = hook("who", "pre_tool", {"tool_called": {"tags": ["auth"], "ok": True}}, when={"tools": ["load_skill"]})
    plan = complete(price(known=MIRA), state(who))
    assert rounds(plan) == [["find_user"], ["load_skill", "get_product"]]


def test_a_skill_that_is_wanted_before_another_is_loaded_first():
    check = {"skill_loaded": {"kind": "strategy"}}
    nudged = hook("nudged", "pre_tool", check, when={"tools": ["load_skill"], "expr": "args.skill == 'item'"})
    assert complete(price(skills=["item", "nudge"]), state(nudged)).skills == ["nudge", "item"]
