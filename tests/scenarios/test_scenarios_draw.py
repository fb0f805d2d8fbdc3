"""Scenarios of the shipped world: shares, determinism, modes, and gold that the host's own hooks let through."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.manifests.specs.world import FaultRates
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.records.scenario import Scenario
from harnessctl.runtime.agent import Agent
from harnessctl.score.phrases import Said
from harnessctl.score.rules import RuleScorer
from harnessctl.simulate.checking import check_scenarios
from harnessctl.simulate.clock import still_clock
from harnessctl.simulate.faults import Faults
from harnessctl.simulate.oracle import Oracle
from harnessctl.simulate.scenarios import Scenarios

HARNESSES = ["live-stream", "mini"]
#: Table 1 of the paper, its `<1%` taken as a half.
TABLE_1 = {
    "product-question": 46, "chat": 19, "clarification": 16, "after-sales": 7, "promotion": 4,
    "presentation-order": 2, "faq": 2, "silent": 0.5,
}  # fmt: skip
#: The value of chi-square that 1% of fair samples exceed, by degrees of freedom.
CHI_SQUARE_1_PERCENT = {7: 18.475}
SEED = 20260320


def chi_square(counts: Counter[str], shares: dict[str, float]) -> float:
    n, whole = sum(counts.values()), sum(shares.values())
    return sum((counts[name] - n * share / whole) ** 2 / (n * share / whole) for name, share in shares.items())


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("harnessctl.hooks").setLevel(logging.ERROR)


@pytest.fixture(scope="module")
def many(live_scenarios):
    """20,000 scenarios of the large host and 5,000 of the small one, at a fixed seed."""
    counts = {"live-stream": 20_000, "mini": 5_000}
    return cache(lambda harness: list(live_scenarios(harness).sample(SEED, counts[harness])))


@pytest.mark.parametrize("harness", HARNESSES)
def test_intents_come_at_the_shares_of_table_1(many, harness):
    drawn = Counter(scenario.intent for scenario in many(harness))
    assert drawn.keys() == TABLE_1.keys()
    assert chi_square(drawn, TABLE_1) < CHI_SQUARE_1_PERCENT[7]


def test_the_mix_is_table_1(live_world):
    assert live_world.spec.simulation.mix == TABLE_1


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_draw_depends_on_seed_and_number_alone(live_scenarios, live_world, live_bundle, harness):
    scenarios = live_scenarios(harness)
    forwards = [msgspec.json.encode(scenarios.draw(3, number)) for number in range(60)]
    again = Scenarios.open(live_world, live_bundle(harness))
    backwards = [msgspec.json.encode(again.draw(3, number)) for number in reversed(range(60))]
    assert forwards == backwards[::-1]
    assert [msgspec.json.encode(s) for s in scenarios.sample(3, 5, start=20)] == forwards[20:25]
    assert len(set(forwards)) == 60
    assert msgspec.json.encode(scenarios.draw(4, 0)) != forwards[0]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), number=st.integers(0, 10**7))
def test_what_always_holds(live_scenarios, live_world, live_bundle, seed, number):
    scenario = live_scenarios("live-stream").draw(seed, number)
    gold, state = scenario.gold, live_bundle("live-stream").state
    assert scenario.id == scenario.request.id == f"live-stream-{seed}-{number:06d}"
    assert (scenario.world, scenario.seed, scenario.source) == (live_world.digest, seed, "family")
    assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario
    assert {*gold.skills, *gold.strategies} <= {skill.name for skill in state.skills}
    assert {call.tool for call in (*gold.calls, *gold.optional)} <= {tool.name for tool in state.tools}
    assert all(len(reply) <= 160 for reply in (*gold.replies, *gold.fallbacks))
    assert all(any(Said(reply).says(way) for way in fact.any) for reply in gold.replies for fact in gold.facts)
    assert not any(Said(reply).says(claim) for reply in gold.replies for claim in gold.claims)
    assert gold.needs.skills == gold.skills
    assert gold.needs.min_chars == min(map(len, gold.replies), default=0)
    assert 1 <= gold.needs.min_rounds <= 6


@pytest.mark.parametrize("harness", HARNESSES)
def test_families_have_many_wordings_in_both_languages(live_scenarios, harness):
    families = live_scenarios(harness).families
    assert len(families) >= {"live-stream": 30, "mini": 14}[harness]
    assert dict.fromkeys(TABLE_1, 0) == {f.spec.intent: 0 for f in families} | dict.fromkeys(TABLE_1, 0)
    few = [(f.spec.id, name) for f in families for name, texts in f.spec.messages.items() if not 6 <= len(texts) <= 12]
    assert not few
    assert sum(len(f.by_language) == 2 for f in families) >= len(families) - 1


def test_every_family_is_drawn_and_languages_are_even(live_scenarios, many):
    scenarios, drawn = live_scenarios("live-stream"), many("live-stream")
    seen = {half for scenario in drawn for half in scenario.family.split("+")}
    assert {f.spec.id for f in scenarios.families} == seen
    languages = Counter(s.language for s in drawn if "+" not in s.family)
    assert 0.46 < languages["zh"] / sum(languages.values()) < 0.54
    assert scenarios.gold_skills().keys() == {
        "item-qa", "live-chat", "calm-complaint", "clarify-comment", "after-sales-care", "promo-answer",
        "show-request", "faq-reply",
    }  # fmt: skip


def test_needs_count_what_hooks_enforce(live_scenarios):
    scenario = next(s for s in live_scenarios("live-stream").sample(1, 400) if s.family == "price" and not s.mode)
    needs = scenario.gold.needs
    assert needs.tools == ["load_skill", "get_product"]
    assert set(needs.rules) == {"item-qa#lookup", "item-qa#price-as-found", "item-qa#no-guess"}
    assert scenario.gold.known["link_id"] == scenario.gold.calls[0].arguments["link_id"]


def each_reply(scenarios: Scenarios, rows: int) -> list[Scenario]:
    """A scenario for each right reply of each family, with rows from all over what it draws."""
    out: list[Scenario] = []
    for family in scenarios.families:
        for language, found in family.by_language.items():
            for place, row in enumerate(found[:: max(1, len(found) // rows)][:rows]):
                replies = family.gold_for(language, row).replies
                for number in range(max(1, len(replies))):
                    gold = family.gold_for(language, row)
                    gold.replies = gold.replies[number : number + 1]
                    name = f"{family.spec.id}-{language}-{place}-{number}"
                    message = family.messages[language][(place + number) % len(family.messages[language])].fill(row)
                    request = CommentInput(
                        id=name,
                        messages=[ViewerMessage(message, viewer=row.get("viewer") or "viewer")],
                        room=row.get("room"),
                        context=family.context.fill(row),
                    )
                    out.append(
                        Scenario(
                            id=name, request=request, harness=scenarios.harness, intent=family.spec.intent,
                            family=family.spec.id, language=language, gold=gold,
                        )
                    )  # fmt: skip
    return out


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_hosts_hooks_let_every_right_reply_through(live_scenarios, live_world, live_bundle, harness):
    scenarios = each_reply(live_scenarios(harness), rows=2)
    unreached = check_scenarios(live_bundle(harness), live_world, scenarios)
    assert [each.render() for each in unreached] == []


@pytest.mark.slow
@pytest.mark.parametrize("harness", HARNESSES)
def test_the_hosts_hooks_let_every_right_reply_through_for_many_rows(live_scenarios, live_world, live_bundle, harness):
    scenarios = each_reply(live_scenarios(harness), rows=60)
    unreached = check_scenarios(live_bundle(harness), live_world, scenarios)
    assert [each.render() for each in unreached] == []


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_oracle_is_scored_in_full_on_what_is_drawn(live_scenarios, live_world, live_bundle, harness):
    scorer = RuleScorer([tool.name for tool in live_bundle(harness).state.tools if tool.effect == "write"])
    scores = []

    def done(scenario, trajectory):
        scores.append(scorer.score(trajectory, scenario))

    drawn = live_scenarios(harness).sample(8, 400)
    assert [u.render() for u in check_scenarios(live_bundle(harness), live_world, drawn, on_done=done)] == []
    low = [
        (s.scenario, s.family, s.reasons)
        for s in scores
        if s.average != 1 or 0 in (s.tool_rationality, s.skill_selection)
    ]
    assert len(scores) == 400
    assert low == []


def test_what_the_faq_says_is_what_gold_says(live_scenarios, live_world, live_bundle):
    """The tool's answer to the question is the one that gold has, also where it is asked in a few more words."""
    wrong = []

    def done(scenario, trajectory):
        told = str([call.result for call in trajectory.tools if call.name == "search_faq"])
        if scenario.gold.known["answer"] not in told:
            wrong.append((scenario.id, scenario.request.messages[0].text, told))

    for harness, ids in (("mini", ("returns", "shop-faq")), ("live-stream", ("item-faq", "shop-faq"))):
        cases = [s for s in each_reply(live_scenarios(harness), rows=25) if s.family in ids]
        check_scenarios(live_bundle(harness), live_world, cases, on_done=done)
    assert wrong == []


@pytest.mark.parametrize("kind", ["timeout", "stale"])
@pytest.mark.parametrize("harness", HARNESSES)
def test_the_hosts_hooks_let_what_is_said_without_the_tools_through(
    live_scenarios, live_world, live_bundle, harness, kind
):
    """Every call fails every time; the oracle is left with the fallbacks, or with a reply that needs no result."""
    drawn = each_reply(live_scenarios(harness), rows=1)
    cases = {s.id: s for s in drawn if s.gold.calls and s.gold.stop == "replied"}

    async def run():
        oracle = Oracle(live_bundle(harness), cases.__getitem__)
        faults = Faults(FaultRates(**{kind: 1.0, "persist": 1.0}))
        async with await Agent.open(
            live_bundle(harness), oracle, world=live_world, clock=still_clock(), isolate=True, faults=faults
        ) as agent:
            return [await agent.run(case.request) for case in cases.values()]

    wrong, fallbacks = [], 0
    for case, trajectory in zip(cases.values(), asyncio.run(run()), strict=True):
        fallbacks += trajectory.reply in case.gold.fallbacks
        if trajectory.reply not in (*case.gold.fallbacks, *case.gold.replies) or trajectory.route != case.gold.route:
            wrong.append((case.id, trajectory.stop, trajectory.error, trajectory.reply))
    assert wrong == []
    assert fallbacks > len(cases) * 0.7
