"""No shipped operator breaks a law on any parent, and both ways of checking agree."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws_envelopes import augmenter, every_operator, preset, variants

from harnessctl.augment.discovery import shipped_operators
from harnessctl.augment.laws import Audit
from harnessctl.augment.laws.pairing import unfit
from harnessctl.bundle import Bundle
from harnessctl.bundle.files import state_digest
from harnessctl.bundle.variation import rebuild, vary
from harnessctl.records.scenario import Needs
from harnessctl.runtime.prompt import PromptView
from harnessctl.runtime.surface import SurfaceView

PARENTS = ("live-stream", "mini", "retail", "imported", "bazaar")
QUICK = 60


@pytest.fixture(params=PARENTS)
def parent(request: pytest.FixtureRequest, shipped: dict[str, Bundle]) -> Bundle:
    """A parent of each kind."""
    if request.param in shipped:
        return shipped[request.param]
    return request.getfixturevalue({"retail": "retail_host"}.get(request.param, request.param))


@pytest.mark.parametrize("name", ["paper", "wide"])
def test_no_law_is_broken(name: str, parent: Bundle):
    made = variants(parent, QUICK, envelope=preset(name))
    assert len({variant.variation.variant for variant in made}) == QUICK


@pytest.mark.parametrize("rate", [0.7, 1.0])
def test_every_operator_at_once_breaks_no_law(rate: float, parent: Bundle):
    assert len(variants(parent, 15, envelope=every_operator(rate))) == 15


def test_none_changes_nothing(parent: Bundle):
    (variant,) = variants(parent, 1, envelope=preset("none"))
    assert variant.bundle.digest == parent.digest


def test_the_thorough_audit_agrees(parent: Bundle):
    audit = Audit(parent.state)
    for variant in variants(parent, 6, seed=11):
        assert audit.check(variant.variation, variant.bundle.state) == []
        assert audit.check(variant.variation, variant.bundle.state, thorough=True) == []


def test_each_operator_alone_breaks_no_law(parent: Bundle):
    counts: Counter[str] = Counter()
    for name in shipped_operators():
        envelope = every_operator(1.0)
        envelope.operators = {name: envelope.operators[name]}
        for variant in variants(parent, 2, seed=3, envelope=envelope):
            counts.update(list(variant.variation.operators))
    assert counts.keys() <= shipped_operators().keys()
    assert counts["tool-rename"] == 2


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_a_sample_needs_stays(data: st.DataObject, shipped: dict[str, Bundle]):
    parent = shipped["live-stream"]
    skills = data.draw(
        st.lists(st.sampled_from([skill.name for skill in parent.state.skills]), max_size=3, unique=True)
    )
    rules = [f"{skill.name}#{rule.id}" for skill in parent.state.skills for rule in skill.rules]
    needs = Needs(
        skills=skills,
        rules=data.draw(st.lists(st.sampled_from(rules), max_size=4, unique=True)),
        tools=[tool.name for tool in parent.state.tools],
        min_chars=data.draw(st.integers(0, 160)),
        min_rounds=data.draw(st.integers(0, 6)),
    )
    number = data.draw(st.integers(0, 10**6))
    variant = augmenter(parent, every_operator(1.0)).variant(seed=1, number=number, needs=needs)
    assert unfit(needs, parent.state, variant.variation) == []
    left = {skill.name: {rule.id for rule in skill.rules} for skill in variant.bundle.state.skills}
    assert set(skills) <= left.keys()
    assert all(rule.partition("#")[2] in left[rule.partition("#")[0]] for rule in needs.rules)
    assert variant.bundle.state.limits["reply_max_chars"].value >= needs.min_chars
    assert variant.bundle.state.limits["max_rounds"].value >= needs.min_rounds


def test_the_record_rebuilds_the_variant(parent: Bundle):
    for variant in variants(parent, 3, seed=5):
        again = rebuild(parent, variant.variation)
        assert again.digest == variant.bundle.digest == state_digest(vary(parent.state, variant.variation.changes))


def test_a_model_can_be_shown_each_variant(shipped: dict[str, Bundle]):
    """Templates are rendered as far as they are constant when the view is made."""
    for variant in variants(shipped["live-stream"], 10, seed=2):
        view = SurfaceView(variant.bundle.state)
        assert PromptView(variant.bundle.state, view).system({"room": None, "skills": view.skill_offers}, [])


def test_the_parent_is_not_altered(parent: Bundle):
    variants(parent, 5, seed=9)
    assert state_digest(parent.state) == parent.digest


@pytest.mark.slow
@pytest.mark.parametrize("envelope", ["paper", "wide"])
@pytest.mark.parametrize("name", ["live-stream", "mini", "retail"])
def test_ten_thousand_variants(name: str, envelope: str, shipped: dict[str, Bundle], request: pytest.FixtureRequest):
    parent = shipped[name] if name in shipped else request.getfixturevalue("retail_host")
    made = augmenter(parent, preset(envelope))
    digests = {made.variant(seed=1, number=number).variation.variant for number in range(10_000)}
    assert len(digests) > 9_900
