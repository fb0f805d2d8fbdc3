"""Degraded oracles: each flaw lowers what it says, and leaves what it says it spares."""

from __future__ import annotations

import asyncio
from statistics import mean

import msgspec
import pytest

from harnessctl.bundle.state import HarnessState, Surface
from harnessctl.errors import UsageError
from harnessctl.records.scenario import Fact, Scenario
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.records.task import METRICS
from harnessctl.runtime.agent import Agent
from harnessctl.score.rules import RuleScorer
from harnessctl.simulate.clock import still_clock
from harnessctl.simulate.flaws import flaw, flaws
from harnessctl.simulate.oracle import Oracle
from tests.oracle.oracle_shop import (
    NUMBERS,
    PRICE_LOOKED_UP,
    SHORT,
    TOOLS,
    bundle,
    call,
    calls,
    changed,
    play,
    price,
    scenario,
    skill,
    state,
)

GUARDED = state(SHORT, PRICE_LOOKED_UP, NUMBERS)
RENAMED = changed(
    GUARDED,
    surface=Surface(
        tools={"get_product": "zx_7", "check_stock": "left", "show_card": "put_up", "load_skill": "open_guide"},
        skills={"item": "wares", "chat": "talk", "orders": "parcels"},
        parameters={"get_product": {"link_id": "number"}},
    ),
)
NAMES = [
    "wrong-skill",
    "wrong-tool",
    "redundant-call",
    "ungrounded-number",
    "over-long",
    "ignores-rule",
    "canonical-names",
    "off-topic",
]
#: Those that show on items of built sets alone: tests/evaluate_robust, tests/evaluate_edits.
ONLY_TASKS = ["picks-distractor", "ignores-instructions", "wrong-order", "discloses"]


def scenarios() -> list[Scenario]:
    """Questions with a fact, a change, and talk."""
    stock = {
        "calls": [call("check_stock", link_id=1)],
        "facts": [Fact(any=["7 left", "7 pieces"], source="check_stock")],
        "replies": ["There are 7 left of link 1.", "Link 1: 7 pieces are there."],
        "fallbacks": ["The link shows what is there."],
        "claims": ["last chance"],
    }
    card = {"calls": [call("show_card", link_id=1)], "replies": ["The card is up.", "You see the card now."]}
    talk = {"skills": ["chat"], "replies": ["Hello!", "Welcome!"], "facts": [Fact(any=["hello", "welcome"])]}
    kinds = [price().gold, *(scenario(**gold).gold for gold in (stock, card, talk))]
    return [
        msgspec.structs.replace(scenario("How much is link 1?", id=f"s{n}"), gold=kinds[n % len(kinds)])
        for n in range(12)
    ]


def measured(of: HarnessState, name: str | None, rate: float = 1.0) -> list[Score]:
    """The scores of all scenarios, by the oracle with the flaw."""

    async def run() -> list[Score]:
        known = {s.request.id: s for s in scenarios()}
        oracle = Oracle(of, known.__getitem__, flaw=flaw(name) if name else None, rate=rate)
        scorer = RuleScorer([tool.name for tool in TOOLS if tool.effect == "write"])
        async with await Agent.open(bundle(of), oracle, clock=still_clock(), env={}) as agent:
            return [scorer.score(await agent.run(s.request), s) for s in known.values()]

    return asyncio.run(run())


def means(scores: list[Score]) -> dict[str, float]:
    return {d: mean(getattr(score, d) for score in scores) for d in DIMENSIONS}


def test_flaws_are_found_by_name():
    assert sorted(flaws()) == sorted([*NAMES, *ONLY_TASKS])
    for name, found in flaws().items():
        assert found.name == name
        assert found.lowers
        assert found.lowers <= {*DIMENSIONS, *METRICS}
        assert found.only_tasks is (name in ONLY_TASKS)
        assert not found.lowers & (found.spares or frozenset())
    with pytest.raises(UsageError) as caught:
        flaw("wrong")
    assert "over-long" in caught.value.hint


@pytest.mark.parametrize("of", [GUARDED, state(), RENAMED], ids=["guarded", "no-hooks", "renamed"])
def test_the_oracle_itself_has_every_score(of):
    assert means(measured(of, None)) == dict.fromkeys(DIMENSIONS, 1.0)


@pytest.mark.parametrize("of", [GUARDED, state()], ids=["guarded", "no-hooks"])
@pytest.mark.parametrize("name", [name for name in NAMES if not flaw(name).only_variants])
def test_each_flaw_lowers_what_it_says_and_nothing_that_it_spares(name, of):
    found = means(measured(of, name))
    for dimension in DIMENSIONS:
        expected = flaw(name).expected(dimension)
        assert expected == "may fall" or (found[dimension] < 1) is (expected == "falls"), (dimension, found)


def test_memorised_names_fail_where_names_are_new_and_nowhere_else():
    assert means(measured(GUARDED, "canonical-names")) == dict.fromkeys(DIMENSIONS, 1.0)
    found = means(measured(RENAMED, "canonical-names"))
    assert all(found[dimension] < 0.5 for dimension in DIMENSIONS), found


def test_a_rate_flaws_its_share_and_the_same_requests_each_time():
    whole = [score.skill_selection for score in measured(GUARDED, "wrong-skill")]
    half = [score.skill_selection for score in measured(GUARDED, "wrong-skill", rate=0.5)]
    assert half == [score.skill_selection for score in measured(GUARDED, "wrong-skill", rate=0.5)]
    assert sum(whole) < sum(half) < len(half)
    assert means(measured(GUARDED, "wrong-skill", rate=0.0)) == dict.fromkeys(DIMENSIONS, 1.0)


def test_wrong_skill_loads_one_other_reply_skill():
    run = play(GUARDED, price(), flawed="wrong-skill")
    assert run.skills in (["orders"], ["chat"])
    assert run.stop == "replied"


def test_wrong_skill_has_nothing_to_do_without_another():
    of = changed(GUARDED, skills=[skill("item"), skill("nudge", "strategy")])
    assert play(of, price(), flawed="wrong-skill").skills == ["item"]


def test_wrong_tool_asks_another_and_says_no_more_than_it_heard():
    run = play(GUARDED, price(), flawed="wrong-tool")
    ((name, status),) = calls(run)
    assert (name != "get_product", status) == (True, "ok")
    assert (run.stop, run.reply) == ("replied", "The link shows its price.")


def test_redundant_call_repeats_a_look_up_or_makes_a_needless_one():
    assert calls(play(GUARDED, price(), flawed="redundant-call")) == [("get_product", "ok")] * 2
    talk = scenario(skills=["chat"], replies=["Hello!"])
    assert len(calls(play(GUARDED, talk, flawed="redundant-call"))) == 1
    few = changed(GUARDED, limits=state(max_rounds=2).limits)
    run = play(few, price(), flawed="redundant-call")
    assert (run.stop, calls(run)) == ("replied", [("get_product", "ok")] * 2)


def test_ungrounded_number_goes_out_as_another_number_of_the_result():
    run = play(GUARDED, price(), flawed="ungrounded-number")
    said = [m["content"] for m in run.messages if m["role"] == "assistant" and not m.get("tool_calls")]
    assert len(said) == 2
    assert run.stop == "replied"
    assert "259" in run.reply
    assert "189" not in "".join(said)


def test_over_long_insists_until_it_is_kept_back():
    run = play(GUARDED, price(), flawed="over-long")
    assert (run.stop, run.reply) == ("hook_blocked", "")
    free = play(state(), price(), flawed="over-long")
    assert free.stop == "replied"
    assert len(free.reply) > 60


def test_ignores_rule_makes_a_claim_of_gold():
    run = play(GUARDED, price(), flawed="ignores-rule")
    assert (run.stop, "the lowest price ever" in run.reply) == ("replied", True)
    assert len(run.reply) <= 60


def test_the_expected_matrix_has_a_word_for_each_cell():
    cells = {
        (name, dimension): found.expected(dimension) for name, found in flaws().items() for dimension in DIMENSIONS
    }
    assert set(cells.values()) == {"falls", "stays", "may fall"}
    assert cells["wrong-skill", "skill_selection"] == "falls"
    assert cells["wrong-skill", "accuracy"] == "stays"
    assert cells["wrong-tool", "accuracy"] == "may fall"
