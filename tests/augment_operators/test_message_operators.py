"""Viewers' messages and actions: which lists may be turned round, and what stands around them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from operator_trial import apply, draft_of, operator, state_of, varied

from harnessctl.augment.operators.message_frame import LEADS
from harnessctl.bundle.state import Action, Block, Framing, HarnessState, Hook

EVENTS = {"type": ["array", "null"], "items": {"properties": {"viewer": {}, "action": {}}}}
TALK = {"type": "array", "items": {"properties": {"speaker": {}, "text": {}}}}
INPUTS = {"properties": {"actions": EVENTS, "history": TALK, "links": {"type": "array"}, "room": {"type": "object"}}}


def state(template: str | None = None, inputs: dict[str, Any] | None = None) -> HarnessState:
    blocks = [Block(id="base", template="Help with {{ history }} {{ actions }}.")]
    if template is not None:
        blocks.append(Block(id="said", role="user", template=template))
    return state_of(blocks=blocks, inputs=inputs or INPUTS)


def turned(held: HarnessState, **settings: Any) -> list[str]:
    draft = draft_of(held)
    apply("message-order", draft, **settings)
    return draft.changes.framing.reverse if draft.changes.framing is not None else []


@pytest.mark.parametrize(
    ("template", "found"),
    [
        (None, ["messages"]),
        ("{{ messages }}", ["messages"]),
        ("Now.", []),
        ("{% for a in actions %}{{ a }}{% endfor %}{{ messages }}", ["messages", "actions"]),
        ("{% for a in (actions or [])[-5:] %}{{ a }}{% endfor %}", ["actions"]),
        ("{{ history }}{{ messages[0].text }}", ["messages"]),
        ("{{ links }}{{ room }}", []),
        ("{{ (actions | first).viewer }}{{ messages }}", ["messages"]),
        ("{{ actions | map(attribute='viewer') | last }}", []),
        ("{% for a in (actions | list)[:3] %}{{ a }}{% endfor %}", []),
        ("{% for a in (actions | selectattr('viewer') | list)[-3:] %}{{ a }}{% endfor %}", []),
        ("{{ actions | length }}", ["actions"]),
    ],
)
def test_lists_of_events_that_the_user_block_shows(template: str | None, found: list[str]) -> None:
    assert turned(state(template)) == found


def test_a_history_is_turned_only_where_the_envelope_names_it() -> None:
    held = state("{% for turn in history %}{{ turn }}{% endfor %}")
    assert turned(held) == []
    assert turned(held, options={"inputs": ["history"]}) == ["history"]


def test_a_list_that_the_parent_turns_is_turned_back() -> None:
    held = state("{{ messages }}{% for a in actions %}{{ a }}{% endfor %}")
    held.prompt.framing = Framing(reverse=["actions"], wrap="x")
    changed = varied("message-order", held)
    assert changed.prompt.framing == Framing(reverse=["messages"], wrap="x")
    assert held.prompt.framing == Framing(reverse=["actions"], wrap="x")


def test_order_and_frame_add_up() -> None:
    draft = draft_of(state("{{ messages }}"))
    apply("message-order", draft)
    assert apply("message-frame", draft) == ["lead", "wrap"]
    framing = draft.changes.framing
    assert framing is not None
    assert framing.reverse == ["messages"]
    assert framing.lead[0] in LEADS["en"]
    assert framing.wrap in operator("message-frame").options["tags"]


def test_leads_say_nothing_that_could_be_taken_for_content() -> None:
    for lines in LEADS.values():
        assert len(set(lines)) == len(lines) >= 8
        for line in lines:
            assert not re.search(r"\d|[一二三四五六七八九十百千万]|https?:|`|please|请", line.lower())
    assert all(line.isascii() for line in LEADS["en"])
    assert not any(line.isascii() for line in LEADS["zh"])


def leads(held: HarnessState, **settings: Any) -> set[str]:
    found = set()
    for number in range(200):
        draft = draft_of(held, number=number)
        if apply("message-frame", draft, only=["lead"], **settings):
            assert draft.changes.framing is not None
            found.add(str(draft.changes.framing.lead[0]))
    return found


def test_leads_are_in_the_harness_s_languages() -> None:
    chinese = state_of(
        blocks=[Block(id="base", template="你是直播间的主播，请用一句话回答观众的问题。")],
        answers="回答观众关于商品的问题",
        loads="加载一个技能",
    )
    assert leads(state()) == set(LEADS["en"])
    assert leads(chinese) == set(LEADS["zh"])
    assert leads(state(), options={"leads": ["Own line."]}) == {*LEADS["en"], "Own line."}


def test_no_lead_is_what_a_hook_forbids() -> None:
    held = state()
    held.hooks += [
        Hook(
            id="a", event="stop", check={"regex": {"must_not": r"(?i)\bincoming\b|:$"}}, otherwise=Action(action="warn")
        ),
        Hook(
            id="b",
            event="stop",
            check={"any": [{"forbid_phrases": {"phrases": ["JUST ARRIVED"]}}, {"regex": {"must_not": "("}}]},
            otherwise=Action(action="warn"),
        ),
    ]
    found = leads(held)
    assert found
    assert found == {x for x in LEADS["en"] if not x.endswith(":") and "just arrived" not in x.lower()}


def test_a_frame_is_never_the_parents_own() -> None:
    held = state()
    held.prompt.framing = Framing(lead=["Own line."], wrap="input")
    options = {"leads": ["Own line."], "tags": ["input", "turn"]}
    assert "Own line." not in leads(held, options=options)
    framing = varied("message-frame", held, options=options).prompt.framing
    assert framing is not None
    assert framing.wrap == "turn"
    only = {"tags": ["input"]}
    assert apply("message-frame", draft_of(held), only=["wrap"], options=only) == []
