"""Surface: what a model sees, and the way back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shop_agent import GET_PRODUCT, ITEM_QA, LOAD_SKILL, answer, calls, says, shop_state, tool, tool_texts

from harnessctl.bundle.state import ExampleMessage, Part, Rule, Skill, Surface, Tool
from harnessctl.bundle.text import Ref
from harnessctl.errors import BundleError
from harnessctl.runtime.surface import SurfaceView

RENAMED = Surface(
    tools={"get_product": "fetch_item", "load_skill": "open_guide"},
    skills={"item-qa": "product-answers"},
    parameters={"get_product": {"link_id": "number"}, "load_skill": {"skill": "guide"}},
)


def test_a_renamed_harness_works_and_its_record_is_canonical() -> None:
    trajectory, model = answer(
        calls(("open_guide", {"guide": "product-answers"})),
        calls(("fetch_item", {"number": 3})),
        says("89."),
        surface=RENAMED,
        require_skill="reply",
    )
    assert [(c.name, c.arguments) for c in trajectory.tools] == [
        ("load_skill", {"skill": "item-qa"}),
        ("get_product", {"link_id": 3}),
    ]
    assert trajectory.skills == ["item-qa"] and trajectory.stop == "replied"
    assert "Call `fetch_item` first." in tool_texts(trajectory)[0]
    offered = str(model.requests[0].tools[:2])
    assert "get_product" not in offered and "item-qa" not in offered and "link_id" not in offered
    assert model.requests[0].tools[1]["function"]["parameters"] == {
        "type": "object",
        "properties": {"number": {"type": "integer", "description": "Number of a link."}},
        "required": ["number"],
        "additionalProperties": False,
    }


def test_the_canonical_names_are_unknown_to_the_model() -> None:
    trajectory, model = answer(
        calls(("get_product", {"number": 3})),
        calls(("fetch_item", {"link_id": 3})),
        calls(("open_guide", {"guide": "item-qa"})),
        says("Sorry."),
        surface=RENAMED,
    )
    assert [c.status for c in trajectory.tools] == ["invalid", "invalid", "invalid"]
    told = "\n".join(m["content"] for m in model.seen[3] if m["role"] == "tool")
    assert "`fetch_item` takes other arguments: `number`." in told
    assert "There is no skill `item-qa`. Skills: `product-answers`, `bargain`." in told


def test_faults_of_arguments_speak_surface_names() -> None:
    trajectory, _ = answer(calls(("fetch_item", {"number": "x"})), says("Sorry."), surface=RENAMED)
    assert "number" in tool_texts(trajectory)[0] and "link_id" not in tool_texts(trajectory)[0]


def test_the_runtimes_own_notices_speak_surface_names() -> None:
    _, model = answer(says("89."), says("89."), surface=RENAMED, require_skill="reply", limits={"max_rounds": 2})
    assert model.seen[1][-1]["content"] == (
        "Load the skill that fits with `open_guide` before you reply. Reply skills: `product-answers`."
    )


def test_a_body_keeps_its_lines_and_shows_its_examples() -> None:
    skill = Skill(
        name="item-qa",
        kind="reply",
        description=["x"],
        body=[
            Part(text=["Intro with ", Ref("skill", "bargain"), ".\n\n## Steps\n"], rules=["a", "b"], marker="1."),
            Part(text=["\n## Notes\nSee ", Ref("rule", "a"), ".\n"], rules=["c"]),
        ],
        rules=[
            Rule(id="a", text=["Look\nit up."]),
            Rule(id="b", text=["At most ", Ref("limit", "reply_max_chars"), "."]),
            Rule(id="c", text=["Smile."]),
        ],
        examples=[
            [
                ExampleMessage(role="user", content=["Price of 3?"]),
                ExampleMessage(role="assistant", calls=[{"tool": "get_product", "arguments": {"link_id": 3}}]),
                ExampleMessage(role="tool", content=['{"price": 89}']),
                ExampleMessage(role="assistant", content=["89 yuan."]),
            ]
        ],
    )
    view = SurfaceView(shop_state(skills=[skill], surface=RENAMED))
    assert view.skill_body("item-qa") == (
        "Intro with `bargain`.\n\n## Steps\n1. Look\n   it up.\n2. At most 80.\n\n## Notes\nSee `#a`.\n- Smile.\n\n"
        '## Example\nuser: Price of 3?\nassistant calls `fetch_item` with {"number":3}\ntool: {"price": 89}\n'
        "assistant: 89 yuan."
    )


@pytest.mark.parametrize(
    "surface",
    [
        Surface(tools={"get_product": "place_order"}),
        Surface(skills={"item-qa": "bargain"}),
        Surface(parameters={"move": {"a": "b"}}),
        Surface(parameters={"move": {"a": "x", "b": "x"}}),
    ],
)
def test_two_names_may_not_be_shown_as_one(surface: Surface) -> None:
    move = tool("move", {"a": {}, "b": {}})
    with pytest.raises(BundleError, match="are both shown as"):
        SurfaceView(shop_state(tools=[LOAD_SKILL, GET_PRODUCT, tool("place_order", {}), move], surface=surface))


def test_names_may_be_swapped() -> None:
    move = tool("move", {"a": {"type": "integer"}, "b": {"type": "string"}})
    view = SurfaceView(shop_state(tools=[move], surface=Surface(parameters={"move": {"a": "b", "b": "a"}})))
    assert view.args_to_surface("move", {"a": 1, "b": "x"}) == {"b": 1, "a": "x"}
    assert view.args_to_canonical("move", {"b": 1, "a": "x"}) == {"a": 1, "b": "x"}
    assert view.schemas["move"]["properties"] == {"b": {"type": "integer"}, "a": {"type": "string"}}


def test_a_rename_reaches_every_schema_of_the_same_object() -> None:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"a": {}}}, "b": {}},
        "anyOf": [{"required": ["a"]}, {"properties": {"b": {"const": 1}}, "required": ["b"]}],
        "if": {"properties": {"a": {}}},
        "dependentRequired": {"a": ["b"]},
        "dependentSchemas": {"b": {"required": ["a"]}},
    }
    move = Tool(name="move", description=[], group="g", parameters=parameters)
    view = SurfaceView(shop_state(tools=[move], surface=Surface(parameters={"move": {"a": "x"}})))
    assert view.schemas["move"] == {
        "type": "object",
        "properties": {"x": {"type": "object", "properties": {"a": {}}}, "b": {}},
        "anyOf": [{"required": ["x"]}, {"properties": {"b": {"const": 1}}, "required": ["b"]}],
        "if": {"properties": {"x": {}}},
        "dependentRequired": {"x": ["b"]},
        "dependentSchemas": {"b": {"required": ["x"]}},
    }


def test_a_description_of_nothing_is_refused() -> None:
    wrong = tool("move", {"a": {}}, docs={"/properties/z": ["?"]})
    with pytest.raises(BundleError, match="a description at '/properties/z'"):
        SurfaceView(shop_state(tools=[wrong]))


NAMES = st.from_regex(r"\A[a-z]{1,3}(_[a-z]{1,3})?\Z")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda v: st.lists(v, max_size=2)
)


@settings(max_examples=60)
@given(data=st.data())
def test_canonical_to_surface_to_canonical_is_the_identity(data: st.DataObject) -> None:
    tools = data.draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    shown = data.draw(st.lists(NAMES, min_size=len(tools), max_size=len(tools), unique=True))
    skills = data.draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    skills_shown = data.draw(st.lists(NAMES, min_size=len(skills), max_size=len(skills), unique=True))
    properties = data.draw(st.lists(NAMES, max_size=4, unique=True))
    properties_shown = data.draw(st.lists(NAMES, min_size=len(properties), max_size=len(properties), unique=True))
    surface = Surface(
        tools=dict(zip(tools, shown, strict=True)),
        skills=dict(zip(skills, skills_shown, strict=True)),
        parameters={tools[0]: dict(zip(properties, properties_shown, strict=True))},
    )
    view = SurfaceView(
        shop_state(
            tools=[tool(name, {p: {} for p in properties}) for name in tools],
            skills=[Skill(name=s, kind="reply", description=[], body=[]) for s in skills],
            surface=surface,
        )
    )
    for name in tools:
        assert view.tool_to_canonical(view.tool_name(name)) == name
    for name in skills:
        assert view.skill_to_canonical(view.skill_name(name)) == name
    args = {p: data.draw(VALUES) for p in properties}
    assert view.args_to_canonical(tools[0], view.args_to_surface(tools[0], args)) == args
    for name in {*tools, *skills} - {*shown, *skills_shown}:
        assert view.tool_to_canonical(name) is None and view.skill_to_canonical(name) is None


def test_offers_are_in_surface_names() -> None:
    view = SurfaceView(shop_state(skills=[ITEM_QA], surface=RENAMED))
    assert view.skill_offers == [
        {"name": "product-answers", "description": "Answers questions with `fetch_item`.", "kind": "reply"}
    ]
