"""Generated projects with hostile names: each compiles, and no operator breaks a law on it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laws_bazaar import Bazaar, compiled, written
from laws_envelopes import augmenter, every_operator, variants
from laws_variant import record

from harnessctl.augment.laws import Audit
from harnessctl.bundle import Bundle
from harnessctl.bundle.files import make_bundle
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Ref
from harnessctl.bundle.variation import Changes, vary
from harnessctl.runtime.surface import SurfaceView

IDENTIFIERS = [
    "get",
    "get_item",
    "get_item_price",
    "get-item",
    "getItem",
    "Get",
    "item",
    "items",
    "show",
    "price",
    "a",
    "find_a",
    "get.item",
    "_get",
    "show_price",
    "skill",
    "tool",
]
SLUGS = ["price", "item", "item-qa", "item-qa-more", "qa", "ask", "show", "get", "a", "get-item", "skill", "tool", "x0"]
PARAMETERS = ["link_id", "count", "note", "item", "price", "show", "title", "description", "skill", "type", "required"]
NOTES = [
    "Be quick.",
    "Show the item, then get the price.",
    "先看再说，别猜。",
    "A tool is a tool; ask for a skill.",
    "Use 3 words at most, never 4.",
    "價格 price 與 item。",
]
ASIDES = ["`zz`", "`zz(3)`", "``z ` z``", "`a b`", "`{zz: 1}`", "`先看`"]


def named(pool: list[str], count: int) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(pool), min_size=count, max_size=count, unique=True).map(tuple)


BAZAARS = st.builds(
    Bazaar,
    tools=named(IDENTIFIERS, 5),
    skills=named(SLUGS, 4),
    notes=st.tuples(*[st.sampled_from(NOTES)] * 3),
    asides=named(ASIDES, 2),
    parameters=named(PARAMETERS, 3),
)
#: Of a project that is written to disk and compiled in each example.
COSTLY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def bundle_of(bazaar: Bazaar) -> Bundle:
    with tempfile.TemporaryDirectory() as folder:
        return compiled(written(bazaar.files(), Path(folder)))


@COSTLY
@given(bazaar=BAZAARS, seed=st.integers(0, 2**32), rate=st.sampled_from([0.3, 1.0]))
def test_no_operator_breaks_a_law(bazaar: Bazaar, seed: int, rate: float):
    parent = bundle_of(bazaar)
    audit = Audit(parent.state)
    assert audit.check(record(parent, Changes()), parent.state, thorough=True) == []
    for variant in variants(parent, 4, seed=seed, envelope=every_operator(rate)):
        assert audit.check(variant.variation, variant.bundle.state, thorough=True) == []


@pytest.fixture(scope="module")
def hostile() -> Bundle:
    """A project whose names are words, parts of each other and, in one case, both a tool and a skill."""
    return bundle_of(
        Bazaar(tools=("get", "get_item", "get-item", "price", "show"), skills=("price", "item", "get", "a"))
    )


def test_one_name_for_a_tool_and_a_skill_is_renamed_for_each(hostile: Bundle):
    state = vary(hostile.state, Changes(tools={"price": "cost_of"}, skills={"price": "cost-help"}))
    view = SurfaceView(state)
    assert view.shown("`tool:price` `skill:price` `price`") == "`cost_of` `cost-help` `cost_of`"
    assert view.args_to_surface("load_skill", {"skill": "price"}) == {"skill": "cost-help"}
    assert (
        Audit(hostile.state).check(
            record(hostile, Changes(tools={"price": "cost_of"}, skills={"price": "cost-help"})), state
        )
        == []
    )


def strings(state: HarnessState) -> list[tuple[object, str]]:
    """(owner, field) of every text in a state that may be altered at random."""
    out: list[tuple[object, str]] = [(tool, "description") for tool in state.tools]
    out += [(skill, "description") for skill in state.skills]
    out += [(rule, "text") for skill in state.skills for rule in skill.rules]
    out += [(item, "text") for block in state.prompt.blocks for item in block.items]
    for hook in state.hooks:
        action = hook.otherwise or hook.then
        if action is not None and action.message is not None:
            out.append((action.message, "text"))
    return out


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_both_ways_of_checking_agree_on_what_is_broken(data: st.DataObject, bazaar: Bundle):
    """A variant with one text replaced at random; the thorough audit finds what the fast one does, and no other law."""
    number = data.draw(st.integers(0, 20))
    variant = augmenter(bazaar).variant(seed=7, number=number)
    state = msgspec.json.decode(msgspec.json.encode(variant.bundle.state), type=HarnessState)
    owner, field = data.draw(st.sampled_from(strings(state)))
    names = [tool.name for tool in bazaar.state.tools] + [skill.name for skill in bazaar.state.skills]
    name = data.draw(st.sampled_from(names))
    form = data.draw(st.sampled_from(["{}", "`{}`", "`{}(3)`", "x.{}", "先{}后", "``{}``", "```\n{}\n```"]))
    kind = data.draw(st.sampled_from(["tool", "skill"]))
    part = Ref(kind, name) if data.draw(st.booleans()) else form.format(name)
    setattr(owner, field, ["See ", part, "."])
    audit = Audit(bazaar.state)
    fast = audit.check(variant.variation, state)
    thorough = audit.check(variant.variation, state, thorough=True)
    assert fast, "a text that the record does not have"
    assert {broken for broken in thorough if not broken.place.startswith("seen/")} == set(fast)
    assert {broken.law for broken in thorough} == {broken.law for broken in fast}


def test_a_parent_that_names_a_tool_bare_is_no_reason_to_refuse(bazaar: Bundle):
    """Descriptions that a server wrote hold bare names; such a tool keeps its name, and variants are made all the same."""
    state = msgspec.json.decode(msgspec.json.encode(bazaar.state), type=HarnessState)
    state.tools[0].description = ["What get_item_price and item-qa-more mean, see `show`."]
    parent = make_bundle(state, name="server", version="1.0.0")
    for variant in variants(parent, 10, envelope=every_operator(1.0)):
        surface = variant.bundle.state.surface
        assert "get_item_price" not in surface.tools
        assert "item-qa-more" in {skill.name for skill in variant.bundle.state.skills} - surface.skills.keys()


def test_a_name_among_the_values_of_a_schema_stays_and_may_not_be_hidden(bazaar: Bundle):
    """A value is an argument, which nothing surfaces: a renaming would leave the old name before the model's eyes."""
    state = msgspec.json.decode(msgspec.json.encode(bazaar.state), type=HarnessState)
    tools = [tool for tool in state.tools if (tool.run or {}).get("builtin") is None]
    other = next(tool for tool in tools if "_" in tool.name)
    holder = next(tool for tool in tools if tool is not other)
    holder.parameters.setdefault("properties", {})["which"] = {"enum": [other.name, "none"]}
    parent = make_bundle(state, name="bazaar", version="1.0.0")
    changes = Changes(tools={other.name: "zzz_new"})
    for thorough in (False, True):
        found = Audit(parent.state).check(record(parent, changes), vary(parent.state, changes), thorough=thorough)
        assert any(broken.law == "b" and other.name in broken.reason for broken in found), found
    for variant in variants(parent, 10, envelope=every_operator(1.0)):
        assert other.name not in variant.variation.changes.tools
