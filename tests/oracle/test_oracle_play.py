"""The oracle at work: it does what the plan says, recovers from what goes wrong, and speaks the harness's names."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from harnessctl.bundle.state import Surface
from harnessctl.errors import ModelError
from harnessctl.records.scenario import Fact
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.protocols import ModelRequest, Sampling
from harnessctl.simulate.clock import still_clock
from harnessctl.simulate.oracle import Oracle
from harnessctl.simulate.wording import NEUTRAL
from tests.oracle.oracle_shop import (
    AUTHENTICATE,
    CUT,
    DENIED,
    MISFIT,
    NUMBERS,
    ORDER_FIRST,
    PRICE_LOOKED_UP,
    SHORT,
    STALE,
    TIMEOUT,
    Told,
    bundle,
    call,
    calls,
    changed,
    hook,
    play,
    price,
    scenario,
    skill,
    state,
)

GUARDED = (SHORT, PRICE_LOOKED_UP, NUMBERS)
RENAMED = Surface(
    tools={"get_product": "zx_7", "load_skill": "open_guide"},
    skills={"item": "wares", "chat": "item"},
    parameters={"get_product": {"link_id": "number"}, "load_skill": {"skill": "guide"}},
)


def replies(what) -> list[str]:
    return what.gold.replies


def test_the_plan_is_carried_out_and_gold_is_said():
    run = play(state(*GUARDED), price())
    assert (run.stop, run.error, calls(run)) == ("replied", None, [("get_product", "ok")])
    assert run.reply in replies(price())
    assert run.skills == ["item"]


def test_seed_and_request_draw_the_wording_and_the_order():
    said = {play(state(), price(), seed=seed).reply for seed in range(12)}
    assert said == set(replies(price()))
    shapes = {tuple(c.round for c in play(state(), price(), seed=seed).tools) for seed in range(12)}
    assert shapes == {(1, 1), (1, 2)}
    assert play(state(), price(), seed=3) == play(state(), price(), seed=3)


@pytest.mark.parametrize("fault", [TIMEOUT, MISFIT, CUT, STALE], ids=lambda fault: fault.kind)
def test_a_fault_that_passes_is_met_by_the_same_call_once_more(fault):
    run = play(state(*GUARDED), price(), faults=Told(get_product=[fault]))
    assert [name for name, _ in calls(run)] == ["get_product", "get_product"]
    assert run.tools[-1].status == "ok"
    assert run.reply in replies(price())


@pytest.mark.parametrize("fault", [TIMEOUT, MISFIT, CUT, STALE], ids=lambda fault: fault.kind)
def test_a_fault_that_stays_is_met_by_a_fallback(fault):
    run = play(state(*GUARDED), price(), faults=Told(get_product=[fault] * 9))
    assert len(calls(run)) == 2
    assert (run.stop, run.reply) == ("replied", "The link shows its price.")


def test_a_call_that_is_denied_is_not_made_again():
    run = play(state(*GUARDED), price(), faults=Told(get_product=[DENIED] * 9))
    assert (calls(run), run.reply) == ([("get_product", "denied")], "The link shows its price.")


@pytest.mark.parametrize(("language", "key"), [("en", "en"), ("zh-Hans", "zh"), ("fr", "en")])
def test_without_a_fallback_something_neutral_is_said(language, key):
    what = msgspec.structs.replace(price(fallbacks=[]), language=language)
    run = play(state(), what, faults=Told(get_product=[DENIED]))
    assert run.reply in NEUTRAL[key]
    assert not any(char.isdigit() for char in run.reply)


def test_a_reply_that_does_not_rest_on_the_failed_call_is_said():
    what = scenario("Where is A9?", skills=["orders"], calls=[call("get_order", order_id="A9")],
                    replies=["Please open it in the app."], fallbacks=["Never said."])  # fmt: skip
    run = play(state(), what)
    assert (calls(run), run.reply) == ([("get_order", "denied")], "Please open it in the app.")


def test_a_reply_with_a_number_that_nothing_told_is_not_said():
    run = play(state(), price(facts=[]), faults=Told(get_product=[TIMEOUT] * 2))
    assert run.reply == "The link shows its price."


def test_a_change_that_failed_is_not_said_to_be_made():
    what = scenario(calls=[call("show_card", link_id=1)], fallbacks=["Please tap the link."])
    assert play(state(), what, faults=Told(show_card=[DENIED])).reply == "Please tap the link."


def test_what_a_failed_prelude_would_have_opened_is_given_up():
    what = scenario("A17", skills=["orders"], calls=[call("get_order", order_id="A17")], known={"email": "mira@example.com"},
                    facts=[Fact(any=["paid"], source="get_order")])  # fmt: skip
    run = play(state(AUTHENTICATE), what, faults=Told(find_user=[TIMEOUT] * 9))
    assert calls(run) == [("find_user", "timeout")] * 2
    assert run.reply in NEUTRAL["en"]


def test_the_last_round_is_for_the_reply():
    what = price(calls=[call("get_product", link_id=1), call("check_stock", link_id=1)])
    run = play(state(max_rounds=2), what, faults=Told(get_product=[TIMEOUT]))
    assert (calls(run), len(run.calls)) == ([("get_product", "timeout"), ("check_stock", "ok")], 2)
    assert (run.stop, run.reply) == ("replied", "The link shows its price.")


def test_calls_are_not_repeated_until_the_runtime_ends_the_request():
    run = play(state(max_repeats=2), price(), faults=Told(get_product=[TIMEOUT] * 9))
    assert (calls(run), run.stop) == ([("get_product", "timeout")], "replied")


def test_calls_keep_below_max_tool_calls():
    many = hook("enough-calls", "pre_model", {"expr": "(calls() | length) < limits.max_tool_calls"})
    run = play(state(many, max_tool_calls=3), price(), faults=Told(get_product=[TIMEOUT]))
    assert (run.stop, len(run.tools)) == ("replied", 2)


def test_a_reply_that_is_sent_back_is_followed_by_the_next_wording():
    first, second = (play(state(), price(), seed=seed).reply for seed in (0, 1))
    assert first in replies(price())
    no = hook("not-that", "stop", {"forbid_phrases": {"phrases": ["yuan, link"]}}, "retry", max_retries=2)
    runs = [play(state(no), price(), seed=seed) for seed in range(8)]
    assert {run.stop for run in runs} == {"replied"}
    assert "It is 189 yuan, link 1." not in {run.reply for run in runs}
    python = hook("not-yet", "stop", {"python": "moody:check"}, "retry", max_retries=2)
    of = changed(state(python), code=state().code | {"moody": "def check(names):\n    return names['round'] > 3"})
    said = [m["content"] for m in play(of, price()).messages if m["role"] == "assistant" and not m.get("tool_calls")]
    assert len(said) == len(set(said)) > 1
    assert second in replies(price())


@pytest.mark.parametrize("role", ["tool", "user", "system"])
@pytest.mark.parametrize("wrap", [None, "note"])
def test_a_call_that_a_hook_sends_back_is_made_again(role, wrap):
    again = hook("again", "pre_tool", None, "retry", max_retries=1, exhausted="warn", role=role, wrap=wrap,
                 when={"tools": ["check_stock"]}, text=["The stock was busy; call again."])  # fmt: skip
    what = scenario(calls=[call("check_stock", link_id=1)], replies=["There are 7."], facts=[Fact(any=["7"])])
    run = play(state(again), what)
    assert (calls(run), run.reply) == ([("check_stock", "blocked"), ("check_stock", "ok")], "There are 7.")


@pytest.mark.parametrize("event", ["pre_tool", "post_tool"])
def test_a_hook_that_crashes_costs_the_call_and_not_the_reply(event):
    crash = hook("crash", event, {"python": "moody:check"}, when={"tools": ["check_stock"]})
    of = changed(state(crash), code=state().code | {"moody": "def check(names):\n    raise RuntimeError('no')"})
    what = scenario(calls=[call("check_stock", link_id=1)], replies=["There are 7."], fallbacks=["See the link."],
                    facts=[Fact(any=["7"], source="check_stock")])  # fmt: skip
    run = play(of, what)
    assert (run.stop, run.reply, len(calls(run))) == ("replied", "See the link.", 2)


def test_it_speaks_the_names_that_the_harness_shows():
    of = changed(state(*GUARDED), surface=RENAMED)
    run = play(of, price())
    assert (run.stop, run.skills, calls(run)) == ("replied", ["item"], [("get_product", "ok")])
    written = [c["function"] for m in run.messages for c in m.get("tool_calls", ())]
    assert {w["name"] for w in written} == {"open_guide", "zx_7"}
    assert '{"number":1}' in {w["arguments"] for w in written}
    assert '{"guide":"wares"}' in {w["arguments"] for w in written}


def test_distractors_and_other_skills_change_nothing():
    of = state(*GUARDED)
    more = changed(of, skills=[skill("noise"), *of.skills, skill("noise-too", "strategy")])
    assert [c.name for c in play(more, price()).tools] == [c.name for c in play(of, price()).tools]
    assert play(more, price()).reply == play(of, price()).reply


def test_a_smaller_limit_takes_a_wording_that_fits():
    for seed in range(6):
        run = play(state(SHORT, reply_max_chars=20), price(), seed=seed)
        assert (run.stop, run.reply) == ("replied", "Link 1 is 189 yuan.")


def test_a_call_that_ends_the_request_is_the_last():
    run = play(state(), scenario(skills=[], calls=[call("stay_silent")], stop="silent", replies=[]))
    assert (run.stop, run.reply, calls(run)) == ("silent", "", [("stay_silent", "ok")])


def test_a_plan_that_is_blocked_is_a_model_error_that_names_the_hook():
    run = play(state(AUTHENTICATE), scenario(calls=[call("get_order", order_id="A17")]))
    assert run.stop == "model_error"
    assert "authenticate" in (run.error or "")


def test_near_the_deadline_it_says_what_it_can():
    request = ModelRequest(
        messages=[
            {"role": "user", "content": "How much is link 1? Yes, do it."},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "get_product", "arguments": '{"link_id":1}'}}]},
            {"role": "tool", "tool_call_id": "a", "content": "error: no answer within 3 s"},
        ],
        tools=[], sampling=Sampling(), deadline=100.0, request_id="s1",
    )  # fmt: skip
    for now, asks in ((0.0, True), (99.0, False)):
        oracle = Oracle(state(), lambda id: price(), clock=Clock(monotonic=lambda now=now: now))
        reply = asyncio.run(oracle.complete(request))
        assert bool(reply.tool_calls) is asks
        assert reply.content == (None if asks else "The link shows its price.")


def test_the_same_messages_have_the_same_answer_whatever_came_before():
    of = state()
    seen: list[tuple[ModelRequest, object]] = []

    class Listening(Oracle):
        async def complete(self, request: ModelRequest):
            reply = await super().complete(request)
            seen.append((msgspec.structs.replace(request, messages=list(request.messages)), reply))
            return reply

    async def run() -> None:
        scenarios = {f"s{n}": price(id=f"s{n}") if n % 2 else scenario(id=f"s{n}") for n in range(6)}
        model = Listening(of, scenarios.__getitem__)
        async with await Agent.open(bundle(of), model, clock=still_clock(), env={}) as agent:
            await asyncio.gather(*(agent.run(s.request) for s in scenarios.values()))
        for request, reply in reversed(seen):
            assert await Oracle(of, scenarios.__getitem__).complete(request) == reply

    asyncio.run(run())
    assert len(seen) >= 12


def test_an_unknown_request_is_an_error_of_the_caller():
    oracle = Oracle(state(), {}.__getitem__)
    request = ModelRequest(messages=[], tools=[], sampling=Sampling(), deadline=1.0, request_id="nobody")
    with pytest.raises(ModelError, match="no scenario"):
        asyncio.run(oracle.complete(request))


def test_a_turn_of_a_session_reads_its_own_part_of_the_talk():
    of = changed(state(AUTHENTICATE), session_keep=["calls", "history"])
    first = price(id="s1")
    second = scenario("And where is A17?", id="s2", skills=["orders"], calls=[call("get_order", order_id="A17")],
                      known={"email": "mira@example.com"}, replies=["It is paid."])  # fmt: skip
    for what in (first, second):
        what.request.session = "talk"

    async def run():
        known = {s.request.id: s for s in (first, second)}
        async with await Agent.open(bundle(of), Oracle(of, known.__getitem__), clock=still_clock(), env={}) as agent:
            return [await agent.run(s.request) for s in known.values()]

    one, two = asyncio.run(run())
    assert (one.stop, two.stop, two.turn) == ("replied", "replied", 1)
    assert calls(one) == [("get_product", "ok")]
    assert (calls(two), two.reply) == ([("find_user", "ok"), ("get_order", "ok")], "It is paid.")


def test_the_baseline_loop_loads_no_skill():
    async def run():
        made = bundle(state(*GUARDED))
        oracle = Oracle(made, lambda id: price(), loop="react")
        async with await Agent.open(made, oracle, loop="react", clock=still_clock(), env={}) as agent:
            return await agent.run(price().request)

    record = asyncio.run(run())
    assert (record.stop, record.skills, calls(record)) == ("replied", [], [("get_product", "ok")])


def test_a_reply_in_json_is_golds_own():
    of = changed(state(), reply_format="json", reply_schema={"type": "object", "required": ["say"]})
    what = price(replies=['{"say": "Link 1 is 189 yuan."}'], fallbacks=['{"say": "The link shows it."}'])
    assert play(of, what).reply == what.gold.replies[0]
    assert play(of, what, faults=Told(get_product=[DENIED])).reply == what.gold.fallbacks[0]


def test_a_change_whose_answer_is_old_is_not_made_twice():
    what = scenario(calls=[call("show_card", link_id=1)])
    old = msgspec.structs.replace(STALE, change=lambda result: {"stale": True} | result)
    assert calls(play(state(), what, faults=Told(show_card=[old] * 3))) == [("show_card", "ok")]


def test_a_call_is_given_up_with_the_one_that_a_hook_demands_before_it():
    what = scenario("A17", calls=[call("get_order", order_id="A17"), call("cancel_order", order_id="A17")],
                    fallbacks=["Please open the order page."])  # fmt: skip
    run = play(state(ORDER_FIRST), what, faults=Told(get_order=[DENIED]))
    assert (calls(run), run.reply) == ([("get_order", "denied")], "Please open the order page.")


@pytest.mark.parametrize("session", [None, "talk"])
def test_a_hook_that_says_the_viewers_words_is_not_taken_for_the_viewer(session):
    no = hook(
        "this", "stop", {"forbid_phrases": {"phrases": ["hello"]}}, "retry", max_retries=3, text=["Not hi, this is hi."]
    )
    what = scenario(
        "hi", skills=["chat"], calls=[call("check_stock", link_id=1)], replies=["Hello!", "Hello you!", "Good day!"]
    )
    what.request.session = session
    for seed in range(5):
        run = play(state(no), what, seed=seed)
        assert (run.stop, run.reply, calls(run)) == ("replied", "Good day!", [("check_stock", "ok")])
