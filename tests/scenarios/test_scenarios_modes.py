"""Modes: what surrounds the message of a scenario changes nothing in what is right, but for a second wish."""

from __future__ import annotations

from collections import Counter

import pytest

from harnessctl.score.phrases import Said


@pytest.fixture(scope="module")
def drawn(live_scenarios):
    return list(live_scenarios("live-stream").sample(5, 3_000))


def test_they_come_at_their_rates(drawn):
    count = Counter(mode for scenario in drawn for mode in scenario.mode)
    can_have = [s for s in drawn if not s.family.startswith("takes-up")]
    assert abs(count["history"] / len(can_have) - 0.25) < 0.03
    assert abs(count["actions"] / len(drawn) - 0.2) < 0.03
    assert 0.04 < count["mixed"] / len(drawn) < 0.07
    assert 0.08 < count["several"] / len(drawn) < 0.13


def test_history_is_talk_in_the_language_of_the_message(drawn):
    for scenario in (s for s in drawn if "history" in s.mode):
        history = scenario.request.context["history"]
        assert len(history) % 2 == 0
        assert [turn["speaker"] for turn in history[1::2]] == ["host"] * (len(history) // 2)
        is_chinese = [any("\u4e00" <= char <= "\u9fff" for char in turn["text"]) for turn in history]
        assert set(is_chinese) == {scenario.language == "zh"}


def test_actions_are_of_real_links(drawn, live_world):
    _, links = live_world.read("SELECT room_id, link_id FROM room_links")
    known = {(row["room_id"], row["link_id"]) for row in links}
    entries = [(s.request.room, a) for s in drawn if "actions" in s.mode for a in s.request.context["actions"]]
    assert {a["action"] for _, a in entries} >= {"joined", "added_to_cart", "ordered"}
    assert all((room, a["link_id"]) in known for room, a in entries if "link_id" in a)


def test_who_asks_does_nothing_to_an_item(drawn):
    """It could be what "how much is it" means, or contradict what is asked for."""
    asked = 0
    for scenario in (s for s in drawn if "actions" in s.mode):
        viewers = {message.viewer for message in scenario.request.messages}
        for action in scenario.request.context["actions"]:
            asked += action["viewer"] in viewers
            assert "link_id" not in action or action["viewer"] not in viewers
    assert asked > 50


def test_several_keeps_the_message_that_counts(drawn, live_scenarios):
    families = {family.spec.id: family for family in live_scenarios("live-stream").families}
    for scenario in (s for s in drawn if "several" in s.mode):
        messages = scenario.request.messages
        family = families[scenario.family]
        asked = {w.fill(scenario.gold.known) for w in family.messages[scenario.language]}
        assert 2 <= len(messages) <= 4
        assert len({message.viewer for message in messages}) == len(messages)
        assert any(message.text in asked for message in messages)
        if "viewer" in scenario.gold.known:
            assert messages[0].text in asked


def test_mixed_has_the_gold_of_both(drawn, live_scenarios):
    families = {family.spec.id: family.spec for family in live_scenarios("live-stream").families}
    mixed = [s for s in drawn if "mixed" in s.mode]
    assert len(mixed) > 100
    assert sum(len(s.request.messages) == 2 for s in mixed) > 30
    for scenario in mixed:
        first, second = (families[name] for name in scenario.family.split("+"))
        gold = scenario.gold
        assert scenario.intent == first.intent
        assert set(gold.skills) == {*first.gold.skills, *second.gold.skills}
        assert {c.tool for c in gold.calls} == {c.tool for c in (*first.gold.calls, *second.gold.calls)}
        assert len(gold.facts) >= max(len(first.gold.facts), len(second.gold.facts))
        assert 1 <= len(gold.replies) <= 6
    assert sum(len({families[name].intent for name in s.family.split("+")}) == 2 for s in mixed) > len(mixed) * 0.9


def test_mixed_may_be_done_by_the_alternatives_of_both(drawn, live_scenarios):
    families = {family.spec.id: family.spec for family in live_scenarios("live-stream").families}
    both = 0
    for scenario in (s for s in drawn if "mixed" in s.mode):
        first, second = (families[name].gold for name in scenario.family.split("+"))
        ways = (1 + len(first.alternatives)) * (1 + len(second.alternatives)) - 1
        assert len(scenario.gold.alternatives) == ways
        both += bool(first.alternatives and second.alternatives)
    assert both > 3


def test_mixed_forbids_nothing_that_either_wish_makes_right(drawn):
    for scenario in (s for s in drawn if "mixed" in s.mode):
        right = [*scenario.gold.replies, *(way for fact in scenario.gold.facts for way in fact.any)]
        assert not [claim for claim in scenario.gold.claims for text in right if Said(text).says(claim)], scenario.id


def test_two_wishes_in_one_message_are_told_apart(drawn, live_scenarios):
    families = {family.spec.id: family for family in live_scenarios("live-stream").families}
    joined = [s for s in drawn if "mixed" in s.mode and len(s.request.messages) == 1]
    commas = 0
    for scenario in joined:
        first = families[scenario.family.split("+")[0]]
        text = scenario.request.messages[0].text
        ways = [w.fill(row) for w in first.messages[scenario.language] for row in first.by_language[scenario.language]]
        own = max((way for way in ways if text.startswith(way)), key=len)
        between = text[len(own) :]
        assert between[0] in (" " if not own[-1].isalnum() else ",，"), text
        commas += between[0] != " "
    assert commas > len(joined) / 2


def test_mini_has_no_inputs_for_talk_and_actions(live_scenarios):
    modes = Counter(mode for s in live_scenarios("mini").sample(5, 800) for mode in s.mode)
    assert modes.keys() == {"several", "mixed"}
