"""Law d: which samples a variant must not be paired with, and why."""

from __future__ import annotations

import pytest
from laws_variant import record

from harnessctl.augment.laws.pairing import unfit
from harnessctl.bundle import Bundle
from harnessctl.bundle.state import Action, Hook
from harnessctl.bundle.variation import Changes
from harnessctl.records.scenario import Needs

DENY = Hook(id="closed", event="pre_tool", when={"tools": ["get"]}, then=Action(action="block"))
DENY_TAG = Hook(id="closed", event="pre_tool", when={"tags": ["lookup"]}, then=Action(action="stop_loop"))
DENY_SOME = Hook(id="closed", event="pre_tool", when={"expr": "round > 1"}, then=Action(action="block"))
ONCE = Hook(id="closed", event="pre_tool", check={"expr": "round > 1"}, otherwise=Action(action="block"))


@pytest.mark.parametrize(
    ("needs", "changes", "reason"),
    [
        (Needs(skills=["price"]), Changes(masked_skills=["price"]), "needs the skill price, which is masked"),
        (
            Needs(rules=["price#then"]),
            Changes(masked_rules={"price": ["then"]}),
            "needs the rule price#then, which is masked",
        ),
        (
            Needs(rules=["price#then"]),
            Changes(masked_skills=["price"]),
            "needs the rule price#then, which is masked",
        ),
        (
            Needs(rules=["always#brief"]),
            Changes(masked_items={"always": ["brief"]}),
            "needs the rule always#brief, which is masked",
        ),
        (
            Needs(skills=["item-qa"]),
            Changes(masked_rules={"item-qa": ["look"]}),
            "the hook first-look enforces item-qa#look, which is masked",
        ),
        (Needs(skills=["gone"]), Changes(), "needs the skill gone, which the harness does not have"),
        (Needs(tools=["gone"]), Changes(), "needs the tool gone, which the harness does not have"),
        (
            Needs(tools=["get"]),
            Changes(added_hooks=[DENY]),
            "needs the tool get, which the added hook closed lets nobody call",
        ),
        (
            Needs(tools=["get_item"]),
            Changes(added_hooks=[DENY_TAG]),
            "needs the tool get_item, which the added hook closed lets nobody call",
        ),
        (
            Needs(min_chars=51),
            Changes(limits={"reply_max_chars": 50}),
            "takes up 51 characters, and reply_max_chars is 50",
        ),
        (Needs(min_chars=81), Changes(), "takes up 81 characters, and reply_max_chars is 80"),
        (Needs(min_rounds=5), Changes(limits={"max_rounds": 4}), "takes up 5 rounds, and max_rounds is 4"),
    ],
)
def test_a_sample_that_would_not_be_fair(needs: Needs, changes: Changes, reason: str, bazaar: Bundle):
    assert unfit(needs, bazaar.state, record(bazaar, changes)) == [reason]


@pytest.mark.parametrize(
    ("needs", "changes"),
    [
        (Needs(), Changes(masked_skills=["price"], masked_rules={"item-qa": ["look"]})),
        (Needs(skills=["price"]), Changes(masked_skills=["ask"], masked_rules={"price": ["then"]})),
        (Needs(skills=["price"]), Changes(masked_rules={"item-qa": ["look"]})),
        (Needs(min_chars=50, min_rounds=4), Changes(limits={"reply_max_chars": 50, "max_rounds": 4})),
        (Needs(tools=["get_item"]), Changes(tools={"get_item": "take_one"}, added_hooks=[DENY])),
        (Needs(tools=["get"]), Changes(added_hooks=[DENY_SOME, ONCE])),
    ],
)
def test_a_sample_that_is_fair(needs: Needs, changes: Changes, bazaar: Bundle):
    assert unfit(needs, bazaar.state, record(bazaar, changes)) == []


def test_each_reason_is_given(bazaar: Bundle):
    needs = Needs(skills=["price"], rules=["item-qa#look"], min_chars=90)
    changes = Changes(masked_skills=["price"], masked_rules={"item-qa": ["look"]})
    assert len(unfit(needs, bazaar.state, record(bazaar, changes))) == 3
