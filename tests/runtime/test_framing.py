"""Framing: what viewers wrote and did is all there once, in the order and between the lines that were asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shop_agent import ToldModel, answer, comment, group, make_agent, says, shop_bundle, shop_state

from harnessctl.bundle.sandbox import compile_template
from harnessctl.bundle.state import Block, Framing, Prompt, Surface
from harnessctl.bundle.text import Ref
from harnessctl.runtime.newest import NewestFirst
from harnessctl.runtime.prompt import PromptView
from harnessctl.runtime.surface import SurfaceView

INPUTS = {"type": "object", "properties": {"actions": {"type": ["array", "null"]}, "history": {"type": "array"}}}
TEMPLATE = """\
{% for act in (actions or [])[-3:] %}
[{{ act.viewer }} {{ act.action }}]
{% endfor %}
{% for message in messages %}
- {{ message.viewer }}: {{ message.text }}
{% endfor %}
"""
THREE = [{"viewer": who, "text": text} for who, text in (("ann", "Price?"), ("bo", "Hi"), ("cy", "Stock?"))]
ACTIONS = [{"viewer": who, "action": "joined"} for who in ("old", "v1", "v2", "v3")]


def user(
    framing: Framing | None, messages: list[dict[str, Any]], *, template: str | None = TEMPLATE, **context: Any
) -> str:
    blocks = [Block(id="base", template="You help.")]
    if template is not None:
        blocks.append(Block(id="said", role="user", template=template))
    state = shop_state(
        prompt=Prompt(inputs=INPUTS, blocks=blocks, framing=framing), surface=Surface(tools={"get_product": "fetch_it"})
    )
    return PromptView(state, SurfaceView(state)).user({"actions": None, **context}, messages)


def test_messages_come_newest_first() -> None:
    said = user(Framing(reverse=["messages"]), THREE)
    assert said == "- cy: Stock?\n- bo: Hi\n- ann: Price?"


def test_without_user_blocks_too() -> None:
    assert user(Framing(reverse=["messages"]), THREE, template=None) == "cy: Stock?\nbo: Hi\nann: Price?"


def test_a_part_of_a_list_is_the_same_part_newest_first() -> None:
    said = user(Framing(reverse=["actions"]), THREE[:1], actions=ACTIONS)
    assert said == "[v3 joined]\n[v2 joined]\n[v1 joined]\n- ann: Price?"


def test_a_lead_and_a_tag_stand_around_it_all() -> None:
    framing = Framing(lead=["Seen with ", Ref("tool", "get_product"), ":"], wrap="input")
    assert user(framing, THREE[:1]) == "<input>\nSeen with `fetch_it`:\n- ann: Price?\n</input>"
    assert user(Framing(lead=["New:"]), THREE[:1]) == "New:\n- ann: Price?"
    assert user(Framing(wrap="input"), THREE[:1]) == "<input>\n- ann: Price?\n</input>"


def test_no_framing_and_an_empty_one_say_the_same() -> None:
    assert user(None, THREE, actions=ACTIONS) == user(Framing(), THREE, actions=ACTIONS)


def test_an_input_that_is_absent_or_no_list_is_left_alone() -> None:
    framing = Framing(reverse=["actions", "history", "elsewhere"])
    assert user(framing, THREE[:1]) == "- ann: Price?"
    assert user(framing, THREE[:1], template="{{ actions }} {{ messages[0].text }}", actions="some") == "some Price?"


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(alphabet="abc<>{}/%\n` ", min_size=1, max_size=12), min_size=1, max_size=6),
    turned=st.booleans(),
    lead=st.sampled_from(["", "New:", "刚收到："]),
    wrap=st.sampled_from([None, "input"]),
)
def test_every_text_is_there_once_in_its_order(texts: list[str], turned: bool, lead: str, wrap: str | None) -> None:
    messages = [{"viewer": f"v{n}", "text": f"<<{n}|{text}|{n}>>"} for n, text in enumerate(texts)]
    framing = Framing(reverse=["messages"] if turned else [], lead=[lead] if lead else [], wrap=wrap)
    said = user(framing, messages)
    places = [said.index(message["text"]) for message in messages]
    assert all(said.count(message["text"]) == 1 for message in messages)
    assert places == sorted(places, reverse=turned)
    assert said.startswith(f"<{wrap}>\n" if wrap else lead)
    assert lead in said[: places[-1] if turned else places[0]]


def test_the_record_keeps_the_order_of_time() -> None:
    prompt = Prompt(
        blocks=[Block(id="base", template="You help.")], framing=Framing(reverse=["messages"], wrap="input")
    )
    trajectory, model = answer(says("Hello."), request=group(("ann", "one"), ("bo", "two")), prompt=prompt)
    assert model.seen[0][-1] == {"role": "user", "content": "<input>\nbo: two\nann: one\n</input>"}
    assert [m["text"] for m in trajectory.request["messages"]] == ["one", "two"]


def test_each_turn_of_a_session_is_framed_once() -> None:
    prompt = Prompt(blocks=[Block(id="base", template="You help.")], framing=Framing(lead=["New:"], wrap="input"))
    model = ToldModel(says("a."), says("b."))
    agent = make_agent(shop_bundle(prompt=prompt, session_keep=["history"]), model)

    async def talk() -> None:
        for text in ("one", "two"):
            await agent.run(comment(text, id=text, session="s"))

    asyncio.run(talk())
    assert [m["content"] for m in model.seen[-1] if m["role"] == "user"] == [
        "<input>\nNew:\none\n</input>",
        "<input>\nNew:\ntwo\n</input>",
    ]


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{ x[0] }}{{ x[-1] }}", "15"),
        ("{% for n in x[-3:] %}{{ n }}{% endfor %}", "543"),
        ("{% for n in x[:2] %}{{ n }}{% endfor %}", "21"),
        ("{% for n in (x or [])[1:][:2] %}{{ n }}{% endfor %}", "32"),
        ("{% for n in x | reverse %}{{ n }}{% endfor %}", "12345"),
        ("{{ x | length }}{{ 3 in x }}", "5True"),
        ("{% for n in x %}{{ loop.index }}{{ n }}{{ ',' if not loop.last }}{% endfor %}", "15,24,33,42,51"),
        ("{{ x | map('string') | join('') }}", "54321"),
        ("{{ x | first }}{{ x | last }}", "51"),
    ],
)
def test_newest_first_in_templates(template: str, shown: str) -> None:
    assert compile_template(template).render(x=NewestFirst([1, 2, 3, 4, 5])) == shown


def test_a_request_whose_list_is_null_is_said_as_ever() -> None:
    prompt = Prompt(
        inputs=INPUTS,
        blocks=[Block(id="said", role="user", template=TEMPLATE)],
        framing=Framing(reverse=["actions", "messages"]),
    )
    _, model = answer(says("Hi."), request=comment("Price?"), prompt=prompt)
    assert model.seen[0][-1]["content"] == "- viewer: Price?"
