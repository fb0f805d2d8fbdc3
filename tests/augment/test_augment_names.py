"""New identifiers: new, valid, injective, the same for the same stream."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.augment.lexicon import SYNONYMS
from harnessctl.augment.names import STYLES, NameMaker
from harnessctl.augment.parent import Parent
from harnessctl.augment.stream import Stream
from harnessctl.bundle import Bundle
from harnessctl.errors import UsageError

TOOL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
SKILL = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@pytest.mark.parametrize("style", STYLES)
def test_names_are_new_valid_and_injective(live: Bundle, style: str):
    words = Parent(live.state).words
    for number in range(20):
        names = NameMaker(words)
        tools = [names.tool(t.name, Stream(7, number, "tool", t.name), [style]) for t in live.state.tools]
        skills = [names.skill(s.name, Stream(7, number, "skill", s.name), [style]) for s in live.state.skills]
        both = [name.lower() for name in (*tools, *skills)]
        assert len(set(both)) == len(both)
        assert not set(both) & words
        assert all(TOOL.fullmatch(name) for name in tools)
        assert all(SKILL.fullmatch(name) and len(name) <= 64 for name in skills)


def test_a_synonym_means_the_same():
    names = {NameMaker(()).tool("get_product", Stream(n), ["synonym"]) for n in range(200)}
    expected = {f"{a}_{b}" for a in ("get", *SYNONYMS["get"]) for b in ("product", *SYNONYMS["product"])}
    assert names <= expected - {"get_product"}
    assert len(names) > 15


def test_styles_look_as_they_should():
    assert re.fullmatch(r"op_[a-z0-9]{4}", NameMaker(()).tool("get_product", Stream(1), ["opaque"]))
    assert re.fullmatch(r"s-[a-z0-9]{4}", NameMaker(()).skill("item-qa", Stream(1), ["opaque"]))
    assert re.fullmatch(r"[a-z]+_[a-z]+", NameMaker(()).tool("get_product", Stream(1), ["plain"]))
    assert re.fullmatch(r"[a-z]+-[a-z]+", NameMaker(()).skill("item-qa", Stream(1), ["plain"]))


@pytest.mark.parametrize("name", ["查商品", "frobnicate", "x" * 64, "a.b.zzz", "_"])
def test_a_name_without_synonyms_gets_a_plain_one(name: str):
    assert re.fullmatch(r"[a-z]+_[a-z]+", NameMaker(()).tool(name, Stream(3), ["synonym"]))


def test_when_every_draw_is_taken_the_name_is_numbered():
    class Everything:
        """All words but those that end in a number."""

        def __contains__(self, word: str) -> bool:
            return not re.search(r"[_-]\d+$", word)

    names = NameMaker(Everything())  # pyrefly: ignore
    assert re.fullmatch(r"[a-z]+_[a-z]+_2", names.tool("get_product", Stream(1), ["synonym"]))
    assert re.fullmatch(r"[a-z]+-[a-z]+-2", names.skill("item-qa", Stream(1), ["opaque"]))


def test_names_know_what_the_variant_already_has():
    names = NameMaker(())
    names.add_words(["fetch_item"])
    given = {names.tool("get_product", Stream(n), ["synonym"]) for n in range(20)}
    assert "fetch_item" not in given
    assert len(given) == 20
    assert not names.are_unlike(given)
    assert names.are_unlike(["something"])


def test_parameters_of_two_tools_may_be_called_alike():
    names = NameMaker(())
    first = names.parameter("one", "link_id", Stream(1), ["synonym"])
    assert names.parameter("two", "link_id", Stream(1), ["synonym"]) == first
    assert names.parameter("one", "link_id", Stream(1), ["synonym"]) != first
    assert names.tool(first, Stream(1), ["synonym"]) != first


def test_a_wished_name_is_given_where_it_is_free():
    names = NameMaker({"gift-desk"})
    assert names.wished("skill", "fan-art", Stream(1)) == "fan-art"
    assert names.wished("skill", "fan-art", Stream(1)) != "fan-art"
    assert names.wished("skill", "gift-desk", Stream(1)) != "gift-desk"


def test_an_unknown_style_is_refused():
    with pytest.raises(UsageError, match="no style of names `fancy`"):
        NameMaker(()).tool("x", Stream(1), ["fancy"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(min_size=1, max_size=70), min_size=1, max_size=8, unique=True),
    st.sampled_from(STYLES),
    st.sets(st.sampled_from([f"{v}_{n}" for v in ("fetch", "read", "obtain") for n in ("item", "goods")])),
)
def test_any_name_gets_a_valid_new_one(originals: list[str], style: str, words: set[str]):
    names = NameMaker(words)
    tools = [names.tool(name, Stream(1, name), [style]) for name in originals]
    skills = [names.skill(name, Stream(2, name), [style]) for name in originals]
    assert all(TOOL.fullmatch(name) for name in tools)
    assert all(SKILL.fullmatch(name) and len(name) <= 64 for name in skills)
    assert len({*tools, *skills}) == 2 * len(originals)
    assert not words & {*tools, *skills}
    assert all(old.lower() != new.lower() for old, new in zip(originals, tools, strict=True))
    again = NameMaker(words)
    assert tools == [again.tool(name, Stream(1, name), [style]) for name in originals]
