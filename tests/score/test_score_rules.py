"""RuleScorer: laws of the whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_cases import WRITES, call, gold, load, look_up, scenario, trajectory

from harnessctl.bundle.variation import Variation
from harnessctl.records.scenario import Fact, GoldCall
from harnessctl.records.score import DIMENSIONS
from harnessctl.score.rules import RuleScorer

SCORER = RuleScorer(WRITES)


def test_a_right_answer_is_right_in_all() -> None:
    score = SCORER.score(trajectory(), scenario(gold()))
    assert [getattr(score, name) for name in DIMENSIONS] == [1, 1, 1, 1]
    assert score.average == 1
    assert score.reasons == {}
    assert (score.id, score.scenario, score.bundle, score.intent, score.variant) == (
        "r1",
        "s1",
        "b",
        "product-question",
        None,
    )


def test_variant_and_faults_are_recorded() -> None:
    variation = Variation(
        parent="p", variant="v", harness="shop", envelope="paper-1", envelope_digest="e", seed=1, number=7
    )
    made = [look_up(fault="timeout", status="timeout"), look_up()]
    score = SCORER.score(trajectory("Link 3 is 89 yuan.", *made), scenario(gold()), variation=variation)
    assert score.variant == 7
    assert score.faults == ["timeout"]


@pytest.mark.parametrize("stop", ["model_error", "cancelled"])
def test_no_score_is_not_zero(stop: str) -> None:
    score = SCORER.score(trajectory("", stop=stop, error="it broke"), scenario(gold()))
    assert [getattr(score, name) for name in DIMENSIONS] == [None] * 4
    assert score.average is None
    assert set(score.reasons) == set(DIMENSIONS)
    assert score.reasons["accuracy"] == [f"the request ended `{stop}`: it broke"]


def test_no_gold_no_score() -> None:
    score = SCORER.score(trajectory(), scenario(None))
    assert score.accuracy is None
    assert score.reasons["accuracy"] == ["the scenario has no gold"]


ARGUMENTS = st.fixed_dictionaries({"link_id": st.integers(1, 4)})
CALLS = st.builds(
    lambda name, args, status, fault, at: call(name, {"price": 89} if status == "ok" else None, status=status, fault=fault, at=at, **args),
    st.sampled_from(["get_product", "check_stock", "create_ticket", "load_skill"]),
    ARGUMENTS,
    st.sampled_from(["ok", "error", "timeout", "denied", "invalid", "blocked"]),
    st.sampled_from([None, None, "timeout"]),
    st.integers(1, 6),
)  # fmt: skip
GOLD_CALLS = st.builds(
    GoldCall, tool=st.sampled_from(["get_product", "check_stock", "create_ticket"]), arguments=ARGUMENTS
)
GOLDS = st.builds(
    gold,
    skills=st.lists(st.sampled_from(["a", "b"]), unique=True),
    strategies=st.lists(st.sampled_from(["c"]), max_size=1),
    calls=st.lists(GOLD_CALLS, max_size=3),
    optional=st.lists(GOLD_CALLS, max_size=2),
    alternatives=st.lists(st.lists(GOLD_CALLS, max_size=2), max_size=2),
    prelude=st.lists(GOLD_CALLS, max_size=1),
    facts=st.lists(st.builds(Fact, any=st.lists(st.sampled_from(["89 yuan", "3", "in stock"]), min_size=1), source=st.sampled_from([None, "get_product"])), max_size=3),
    stop=st.sampled_from(["replied", "silent", "refused", "hook_blocked"]),
    route=st.sampled_from(["public", "private"]),
)  # fmt: skip
TRAJECTORIES = st.builds(
    lambda reply, tools, skills, stop, route: trajectory(reply, tools=tools, skills=skills, stop=stop, route=route),
    st.text(max_size=30) | st.sampled_from(["Link 3 is 89 yuan", "3号89元", "it is 45 yuan"]),
    st.lists(CALLS, max_size=6),
    st.lists(st.sampled_from(["a", "b", "c", "d"]), unique=True),
    st.sampled_from(["replied", "silent", "refused", "round_limit", "deadline", "hook_blocked", "model_error"]),
    st.sampled_from(["public", "private", "silent"]),
)


@settings(max_examples=150, deadline=None)
@given(TRAJECTORIES, GOLDS)
def test_scores_are_in_their_ranges_and_say_why(made: Any, wanted: Any) -> None:
    score = SCORER.score(made, scenario(wanted))
    if made.stop == "model_error":
        assert score.accuracy is None
        return
    assert score.accuracy in (0, 1)
    assert score.effectiveness in (0, 0.5, 1)
    for name in ("tool_rationality", "skill_selection"):
        assert 0 <= getattr(score, name) <= 1
    for name in DIMENSIONS:
        assert getattr(score, name) == 1 or score.reasons[name]
    assert SCORER.score(made, scenario(wanted)) == score


@settings(max_examples=100, deadline=None)
@given(TRAJECTORIES, GOLDS, st.randoms(use_true_random=False))
def test_the_order_of_look_ups_skills_and_facts_changes_nothing(made: Any, wanted: Any, random: Any) -> None:
    made.tools = [c for c in made.tools if c.name not in WRITES and c.fault is None]
    before = SCORER.score(made, scenario(wanted))
    for part in (made.tools, made.skills, wanted.facts, wanted.skills, wanted.optional):
        random.shuffle(part)
    after = SCORER.score(made, scenario(wanted))
    assert [getattr(after, name) for name in DIMENSIONS] == [getattr(before, name) for name in DIMENSIONS]


@settings(max_examples=100, deadline=None)
@given(GOLDS)
def test_an_extra_call_or_skill_never_helps(wanted: Any) -> None:
    wanted.stop = "replied"
    plain = SCORER.score(trajectory(), scenario(wanted))
    more = SCORER.score(
        trajectory("Link 3 is 89 yuan.", load("item-qa"), look_up(), call("no_tool", status="invalid"), skills=["item-qa", "zz"]),
        scenario(wanted),
    )  # fmt: skip
    assert more.tool_rationality < plain.tool_rationality or plain.tool_rationality == 0
    assert more.skill_selection < plain.skill_selection or plain.skill_selection == 0


def test_the_loader_has_any_name() -> None:
    made = trajectory("Link 3 is 89 yuan.", call("fetch_rules", skill="item-qa"), look_up())
    assert RuleScorer(loader="fetch_rules").score(made, scenario(gold())).tool_rationality == 1
    assert SCORER.score(made, scenario(gold())).tool_rationality == 0.5
