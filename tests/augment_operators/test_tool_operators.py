"""Tools and their parameters: other names, words, orders, and tools beside them."""

from __future__ import annotations

import asyncio
from typing import Any

import jsonschema_rs
import pytest
from operator_trial import apply, draft_of, operator, rule, seen, state_of, tool, varied

from harnessctl.augment.distractors import SOURCE, distractors
from harnessctl.bundle.state import Action, Block, HarnessState, Hook, Message, Surface, Tool
from harnessctl.bundle.text import Ref
from harnessctl.bundle.variation import Changes, vary
from harnessctl.records.trajectory import ToolStatus
from harnessctl.runtime.code import Code
from harnessctl.runtime.protocols import ToolContext
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tools.toolset import ToolSet

SHOP = state_of(tools=[tool("get_product", "link", "size"), tool("find", "query")])


def test_each_tool_has_a_new_name_of_its_own_and_the_canonical_one_is_hidden() -> None:
    view = SurfaceView(varied("tool-rename", SHOP))
    shown = [offer["function"]["name"] for offer in view.tools]
    assert len(set(shown)) == 3
    assert not set(shown) & {"load_skill", "get_product", "find"}
    assert [view.tool_to_canonical(name) for name in shown] == ["load_skill", "get_product", "find"]
    assert view.tool_to_canonical("find") is None


def test_styles_are_those_of_the_envelope() -> None:
    state = varied("tool-rename", SHOP, options={"styles": ["opaque"]})
    assert all(name.startswith("op_") for name in state.surface.tools.values())


def test_descriptions_and_parameters_are_reworded_where_they_are() -> None:
    state = varied("tool-describe", SHOP)
    product = state.tools[1]
    assert product.description[0] in ("1! ", "2! ")
    assert {pointer: text[1] for pointer, text in product.docs.items()} == {
        "/properties/link": "The link.",
        "/properties/size": "The size.",
    }
    assert product.parameters == SHOP.tools[1].parameters


def test_parameters_keep_their_words_at_a_rate_of_nothing() -> None:
    state = varied("tool-describe", SHOP, options={"parameters": 0})
    assert state.tools[1].docs == SHOP.tools[1].docs
    assert state.tools[1].description != SHOP.tools[1].description


def test_a_rewriter_without_wordings_is_counted_and_changes_nothing() -> None:
    draft = draft_of(SHOP)
    draft.rewriter = type("Silent", (), {"name": "silent", "wordings": lambda self, text, kind: []})()
    assert apply("tool-describe", draft) == []
    assert draft.fallbacks == 6
    assert draft.changes == Changes()


def test_tools_change_places_and_added_ones_among_them() -> None:
    draft = draft_of(SHOP)
    apply("tool-distract", draft, count=[2, 2])
    apply("tool-reorder", draft)
    state = seen(vary(SHOP, draft.changes))
    assert sorted(t.name for t in state.tools) == sorted([*(t.name for t in SHOP.tools), *(t.name for t in draft.changes.added_tools)])  # fmt: skip
    assert [t.name for t in state.tools] != [t.name for t in SHOP.tools]


def test_every_order_of_tools_comes_up() -> None:
    orders = {tuple(t.name for t in varied("tool-reorder", SHOP, number=n).tools) for n in range(60)}
    assert len(orders) == 5, "all but the parent's own"


def test_one_tool_has_no_other_order() -> None:
    assert apply("tool-reorder", draft_of(state_of())) == []


# parameters


def test_parameters_are_shown_under_new_names_and_come_back_canonical() -> None:
    state = varied("parameter-rename", SHOP)
    view = SurfaceView(state)
    names = state.surface.parameters["get_product"]
    assert set(names) == {"link", "size"}
    assert set(view.schemas["get_product"]["properties"]) == set(names.values())
    assert set(view.schemas["get_product"]["required"]) == set(names.values())
    assert view.args_to_canonical("get_product", {names["link"]: 1, names["size"]: 2}) == {"link": 1, "size": 2}
    assert view.args_to_canonical("get_product", {"link": 1}) is None
    assert state.tools[1].parameters == SHOP.tools[1].parameters
    assert view.load_skill_shown == state.surface.parameters["load_skill"]["skill"]


def spoken_of(**fields: Any) -> list[str]:
    state = state_of(tools=[tool("get", "link_id", "size", docs={})], **fields)
    return [target for target in operator("parameter-rename").targets(draft_of(state)) if target.startswith("get#")]


def message(text: list[str | Ref]) -> Hook:
    return Hook(id="h", event="stop", then=Action(action="retry", message=Message(text=text)))


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({}, ["get#link_id", "get#size"]),
        ({"blocks": [Block(id="b", template="Give `size` always.")]}, ["get#link_id"]),
        ({"blocks": [Block(id="b", template="Give the size always.")]}, ["get#link_id", "get#size"]),
        ({"blocks": [Block(id="b", template="Give link_id.")]}, ["get#size"]),
        ({"blocks": [Block(id="b", items=[rule("i", "Give link_id, please.")])]}, ["get#size"]),
        ({"blocks": [Block(id="b", heading=["link_id first"], items=[rule("i")])]}, ["get#size"]),
        ({"blocks": [Block(id="b", template="My link_ids.")]}, ["get#link_id", "get#size"]),
        ({"hooks": [message(["Check `link_id`."])]}, ["get#size"]),
        ({"hooks": [message(["Call ", Ref("tool", "get"), " with `size`."])]}, ["get#link_id"]),
        ({"code": {"m": 'def f(link_id): return "no link_id given"'}}, ["get#size"]),
        ({"code": {"m": 'def f(size): return f"wrong `size` {size} here"'}}, ["get#link_id"]),
        ({"code": {"m": 'def f(link_id):\n    "Takes link_id and more."\n    return {"link_id": link_id}'}}, ["get#link_id", "get#size"]),
        ({"code": {"m": "this is no python: `size` link_id"}}, []),
        ({"files": {"check.sh": "echo 'set `size` please'"}}, ["get#link_id"]),
    ],
)  # fmt: skip
def test_a_parameter_that_a_text_speaks_of_keeps_its_name(fields: dict[str, Any], left: list[str]) -> None:
    assert spoken_of(**fields) == left


def test_a_parameter_named_in_another_ones_description_keeps_its_name() -> None:
    get = tool("get", "link_id", "size", docs={"/properties/size": ["Needs link_id."]})
    assert "get#link_id" not in operator("parameter-rename").targets(draft_of(state_of(tools=[get])))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {}}, "$ref": "#/$defs/x", "$defs": {"x": {"required": ["a"]}}},
        {"properties": {"a": {}}, "allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"required": ["a"]}}},
        {"properties": {"a": {}}, "patternProperties": {"^x": {}}},
        {"properties": {"a": {}}, "dependentSchemas": {"a": {"propertyNames": {"enum": ["a"]}}}},
        {"properties": {"a": {}}, "anyOf": [{"not": {"propertyNames": {"pattern": "^a"}}}]},
    ],
)
def test_a_schema_that_names_parameters_in_patterns_or_references_is_left_alone(schema: dict[str, Any]) -> None:
    draft = draft_of(state_of(tools=[tool("get", parameters=schema, docs={})]))
    assert [t for t in operator("parameter-rename").targets(draft) if t.startswith("get#")] == []


def test_a_reference_within_a_parameter_does_not_matter() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}}
    state = varied("parameter-rename", state_of(tools=[tool("get", parameters=schema, docs={})]))
    assert "a" in state.surface.parameters["get"]


def test_parameters_are_shown_in_another_order() -> None:
    get = tool("get", "a", "b", "c")
    state = varied("parameter-reorder", state_of(tools=[get, tool("one", "x")]))
    view = SurfaceView(state)
    shown = list(view.schemas["get"]["properties"])
    assert sorted(shown) == ["a", "b", "c"]
    assert shown != ["a", "b", "c"]
    assert set(state.surface.parameter_order) == {"get"}
    assert view.schemas["get"]["required"] == ["a", "b", "c"]


def test_an_order_holds_for_renamed_parameters_too() -> None:
    draft = draft_of(state_of(tools=[tool("get", "a", "b", "c")]))
    apply("parameter-rename", draft)
    apply("parameter-reorder", draft)
    state = seen(vary(draft.state, draft.changes))
    names = state.surface.parameters["get"]
    shown = list(SurfaceView(state).schemas["get"]["properties"])
    assert shown == [names[canonical] for canonical in state.surface.parameter_order["get"]]


def test_the_order_drawn_does_not_depend_on_the_order_in_memory() -> None:
    one = state_of(tools=[tool("get", "a", "b", "c")])
    other = state_of(tools=[tool("get", "c", "a", "b")])
    assert (
        varied("parameter-reorder", one).surface.parameter_order
        == varied("parameter-reorder", other).surface.parameter_order
    )


# distractors


def test_the_pool_is_large_and_has_both_languages() -> None:
    english, chinese = distractors("en"), distractors("zh")
    assert len(english) == len(chinese) >= 24
    assert len({distractor.name for distractor in english}) == len(english)
    for distractor in (*english, *chinese):
        texts = [distractor.description, distractor.short, *distractor.docs.values()]
        assert all(text.isascii() is (distractor in english) for text in texts)
        assert set(distractor.docs) == set(distractor.parameters) >= set(distractor.required)
        jsonschema_rs.validator_for({"properties": distractor.parameters})
        assert len(distractor.short) < len(distractor.description)
        # What a tool is about is said by itself, so that a harness that has such a tool is known by it.
        said = distractor.description.lower()
        assert any(word in said for word in distractor.about)


def test_distractors_stand_among_the_tools_with_names_of_their_own() -> None:
    places = set()
    for number in range(20):
        state = varied("tool-distract", SHOP, number=number, count=[1, 1])
        (added,) = [t for t in state.tools if t.group == "distractor"]
        assert added.effect == "none"
        places.add([t.name for t in state.tools].index(added.name))
    assert places == {0, 1, 2, 3}


def test_a_distractor_is_of_no_use_that_the_harness_has() -> None:
    state = state_of(tools=[tool("city_weather", "city"), tool("hotel_search", "city"), tool("find_gym", "city")])
    varied_state = varied("tool-distract", state, count=[99, 99])
    added = {t.name for t in varied_state.tools if t.group == "distractor"}
    assert len(added) == len(distractors("en")) - 3
    assert not added & {"get_weather", "book_hotel_room", "gym_classes"}


def test_a_name_that_is_taken_gives_way() -> None:
    state = state_of(blocks=[Block(id="b", template="Never call set_timer or play_playlist.")])
    changed = varied("tool-distract", state, count=[99, 99])
    added = [t.name for t in changed.tools if t.group == "distractor"]
    assert len(set(added)) == len(added) == len(distractors("en"))
    assert not {"set_timer", "play_playlist"} & set(added)


WORDY = "Reads the facts of one link of the room, prices and stock among them."


def test_distractors_are_written_as_the_harness_writes_its_tools() -> None:
    bare = tool("get", "link", docs={}, description=["facts of a link"])
    for added in added_to(state_of(tools=[bare, bare_named("find")])):
        assert len(str(added.description[0])) < 30
        assert not added.docs
        assert "additionalProperties" not in added.parameters
    schema = {"type": "object", "properties": {"link": {}}, "additionalProperties": False}
    full = tool("get-it", parameters=schema, docs={"/properties/link": ["The link."]}, description=[WORDY])
    other = tool("find-it", parameters=schema, docs={}, description=[WORDY])
    for added in added_to(state_of(tools=[full, other], loads=WORDY)):
        assert len(str(added.description[0])) > 20
        assert str(added.description[0]).endswith(".")
        assert set(added.docs) == {f"/properties/{name}" for name in added.parameters["properties"]}
        assert added.parameters["additionalProperties"] is False
        assert "_" not in added.name


def bare_named(name: str) -> Tool:
    return tool(name, "query", docs={}, description=["answers"])


def added_to(state: HarnessState) -> list[Tool]:
    return [t for t in varied("tool-distract", state, count=[40, 40]).tools if t.group == "distractor"]


def test_chinese_harnesses_get_chinese_distractors() -> None:
    state = state_of(
        blocks=[Block(id="b", template="你是主播，先查再答。")],
        answers="回答观众关于商品价格的问题",
        loads="加载一个技能",
    )
    added = [t for t in varied("tool-distract", state).tools if t.group == "distractor"]
    assert added
    assert all(not t.description[0].isascii() for t in added)


@pytest.mark.parametrize(("answer", "status"), [("nothing", "ok"), ("refused", "denied")])
def test_whoever_calls_one_learns_that_there_is_nothing(answer: str, status: ToolStatus) -> None:
    state = varied("tool-distract", SHOP, count=[40, 40], options={"answers": [answer]})
    added = [t for t in state.tools if t.group == "distractor"]
    toolset = ToolSet(state, code=Code("0" * 64, state.code), surface=SurfaceView(state), env={})
    context = ToolContext(context={}, session={}, world=None, limits={}, deadline=float("inf"))

    async def call_all() -> list[Any]:
        return [await toolset.call(t, dict.fromkeys(t.parameters["properties"], "x"), context, 5) for t in added]

    outcomes = asyncio.run(call_all())
    assert {outcome.status for outcome in outcomes} == {status}
    assert not [warning for warning in toolset.warnings if "shop" not in warning]
    if answer == "nothing":
        assert {str(outcome.result) for outcome in outcomes} == {"{'status': 'nothing to do'}"}


def test_the_code_is_the_same_in_each_variant_and_never_takes_anothers_place() -> None:
    first, second = (varied("tool-distract", SHOP, number=n) for n in (1, 2))
    assert first.code == second.code == {"harnessctl_distractors": SOURCE}
    taken = state_of(code={"harnessctl_distractors": "x = 1"})
    state = varied("tool-distract", taken)
    assert state.code == {"harnessctl_distractors": "x = 1", "harnessctl_distractors_2": SOURCE}
    again = varied("tool-distract", state, number=5)
    assert again.code == state.code


def test_added_tools_are_renamed_as_the_others_are() -> None:
    draft = draft_of(SHOP)
    apply("tool-distract", draft, count=[3, 3])
    for name in ("parameter-rename", "tool-rename"):
        apply(name, draft)
    state = seen(vary(SHOP, draft.changes))
    for added in draft.changes.added_tools:
        assert added.name in state.surface.tools
        assert set(state.surface.parameters[added.name]) == set(added.parameters["properties"])


def test_a_parent_with_an_order_of_its_own_keeps_to_it() -> None:
    get = tool("get", "a", "b", "c")
    state = state_of(tools=[get], surface=Surface(parameter_order={"get": ["c", "b", "a"]}))
    orders = {tuple(varied("parameter-reorder", state, number=n).surface.parameter_order["get"]) for n in range(40)}
    assert ("c", "b", "a") not in orders
    assert len(orders) == 5
