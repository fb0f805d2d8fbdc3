"""Law: a plan that is made goes through. Hooks and gold are drawn; what is not blocked is carried out without a refusal."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnessctl.bundle.state import Hook
from harnessctl.records.scenario import GoldCall
from harnessctl.simulate.plan import PlanBlocked, complete
from tests.oracle.oracle_shop import (
    CUT,
    DENIED,
    MISFIT,
    NUMBERS,
    SHORT,
    STALE,
    TIMEOUT,
    Told,
    calls,
    hook,
    play,
    scenario,
    state,
)

LOOK_UPS = ("get_product", "check_stock", "search")
CALLED = ("get_product", "check_stock", "search", "show_card", "cancel_order", "get_order", "find_user")
KNOWN = {"query": "pan", "link_id": 1, "order_id": "A17", "email": "mira@example.com"}
ARGUMENTS = {
    "get_product": {"link_id": 1}, "check_stock": {"link_id": 1}, "search": {"query": "pan"}, "show_card": {"link_id": 1},
    "cancel_order": {"order_id": "A17"}, "get_order": {"order_id": "A17"}, "find_user": {"email": "mira@example.com"},
}  # fmt: skip

subsets = st.lists(st.sampled_from(CALLED), min_size=1, max_size=2, unique=True)


@st.composite
def checks(draw, depth: int = 1) -> dict[str, Any]:
    kind = draw(st.sampled_from(["called", "called", "called", "text", "all", "any"] if depth else ["called", "text"]))
    if kind == "called":
        return {"tool_called": {"tools": draw(subsets), "ok": True}}
    if kind == "text":
        return {
            "regex": {
                "target": "message",
                draw(st.sampled_from(["must", "must_not"])): draw(st.sampled_from(["yes", "no"])),
            }
        }
    return {kind: draw(st.lists(checks(depth=depth - 1), min_size=1, max_size=2))}


@st.composite
def guards(draw) -> list[Hook]:
    return [
        hook(f"h{number}", "pre_tool", draw(checks()), when={"tools": draw(subsets)})
        for number in range(draw(st.integers(0, 3)))
    ]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    guards(),
    st.lists(st.sampled_from(CALLED), min_size=1, max_size=3, unique=True),
    st.integers(3, 7),
    st.integers(0, 3),
)
def test_a_plan_that_is_made_goes_through(hooks, named, most, seed):
    of = state(*hooks, max_rounds=most)
    what = scenario("yes", calls=[GoldCall(tool=name, arguments=ARGUMENTS[name]) for name in named], known=KNOWN)
    try:
        plan = complete(what, of)
    except PlanBlocked as blocked:
        assert blocked.hook in {"limit", *(h.id for h in hooks)}
        assert blocked.reason
        return
    run = play(of, what, seed=seed)
    assert (run.stop, run.error) == ("replied", None)
    assert run.reply in what.gold.replies
    assert len(run.calls) <= most
    assert {name for name, status in calls(run) if status == "ok"} == {s.tool for s in plan.steps if s.why != "skill"}
    assert set(named) <= {name for name, _ in calls(run)}
    assert {status for _, status in calls(run)} == {"ok"}


FAULTS = st.lists(st.sampled_from([None, TIMEOUT, MISFIT, CUT, DENIED, STALE]), max_size=3)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    guards(),
    st.lists(st.sampled_from(CALLED), min_size=1, max_size=3, unique=True),
    st.dictionaries(st.sampled_from(CALLED), FAULTS),
    st.integers(2, 6),
    st.integers(2, 4),
    st.booleans(),
)
def test_whatever_fails_something_is_said_and_no_call_is_made_for_ever(hooks, named, faults, most, repeats, parallel):
    of = state(*hooks, SHORT, NUMBERS, max_rounds=most, max_repeats=repeats, max_parallel_tools=4 if parallel else 1)
    what = scenario("yes", calls=[GoldCall(tool=name, arguments=ARGUMENTS[name]) for name in named], known=KNOWN,
                    fallbacks=["Please tap the link."])  # fmt: skip
    try:
        complete(what, of)
    except PlanBlocked:
        return
    run = play(of, what, faults=Told(**faults))
    assert (run.stop, run.error) == ("replied", None)
    made = [name for name, _ in calls(run)]
    assert all(made.count(name) <= 2 for name in made)
    assert len(run.calls) <= most
