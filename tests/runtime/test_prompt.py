"""The prompt: what is rendered once, what depends on the request, and inputs that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
from shop_agent import ITEM_QA, answer, comment, group, says, shop_bundle, shop_state

from harnessctl.bundle.state import Block, Prompt, Rule, Surface
from harnessctl.bundle.text import Ref
from harnessctl.errors import BundleError
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.prompt import PromptView
from harnessctl.runtime.surface import SurfaceView

SAY = says("Hi.")
INPUTS = {
    "type": "object",
    "properties": {
        "room": {"type": "object", "required": ["title"]},
        "faq": {"type": "array", "items": {"type": "string"}},
        "tone": {"type": "string", "default": "warm"},
    },
    "required": ["room"],
}


def prompt_of(*blocks: Block, context: dict[str, Any] | None = None, **state: Any) -> str:
    request = comment(context=context or {})
    trajectory, model = answer(SAY, request=request, prompt=Prompt(inputs=INPUTS, blocks=list(blocks)), **state)
    assert trajectory.stop == "replied", trajectory.error
    return model.seen[0][0]["content"]


ROOM = {"room": {"title": "Summer"}}


def test_blocks_are_joined_by_blank_lines_and_empty_ones_left_out() -> None:
    text = prompt_of(
        Block(id="base", template="You host.\n"),
        Block(id="empty", template="{% if false %}x{% endif %}"),
        Block(id="room", template="Room: {{ room.title }}"),
        Block(id="faq", template="FAQ: {{ faq }}", when="faq"),
        Block(
            id="rules", heading=["## Rules"], items=[Rule(id="a", text=["Be\nbrief."]), Rule(id="b", text=["Smile."])]
        ),
        context=ROOM,
    )
    assert text == "You host.\n\nRoom: Summer\n\n## Rules\n- Be\n  brief.\n- Smile."


def test_names_and_limits_in_templates_are_those_that_the_model_sees() -> None:
    text = prompt_of(
        Block(
            id="base",
            template="`{{ tool('get_product') }}` `{{ skill('item-qa') }}` {{ limits.reply_max_chars }}\n"
            "{% for s in skills %}\n- {{ s.name }} ({{ s.kind }}): {{ s.description }}\n{% endfor %}",
        ),
        Block(id="items", items=[Rule(id="a", text=["Use ", Ref("tool", "get_product"), "."])]),
        context=ROOM,
        limits={"reply_max_chars": 60.0},
        surface=Surface(tools={"get_product": "fetch_item"}, skills={"item-qa": "product-answers"}),
    )
    assert text == (
        "`fetch_item` `product-answers` 60\n- product-answers (reply): Answers questions with `fetch_item`.\n"
        "- bargain (strategy): Haggles.\n\n- Use `fetch_item`."
    )


def test_omitted_inputs_are_their_default_or_null() -> None:
    assert prompt_of(Block(id="b", template="{{ faq }} {{ tone }}"), context=ROOM) == "None warm"


@pytest.mark.parametrize(
    ("context", "fault"),
    [
        ({}, 'context: the whole: "room" is a required property'),
        (
            {"room": {}, "faq": [1]},
            'context: /faq/0: 1 is not of type "string"; /room: "title" is a required property',
        ),
        ({"room": {"title": object()}}, "context: not JSON: "),
    ],
)
def test_a_bad_context_is_a_clear_record(context: dict[str, Any], fault: str) -> None:
    prompt = Prompt(inputs=INPUTS, blocks=[Block(id="b", template="x")])
    trajectory, model = answer(SAY, request=comment(context=context), prompt=prompt)
    assert (trajectory.stop, trajectory.reply, trajectory.route) == ("hook_blocked", "", "silent")
    assert trajectory.error is not None and trajectory.error.startswith(fault)
    assert model.requests == [] and trajectory.messages == []


class Shelf:
    """A world of one room."""

    digest = "d" * 64

    def context(self, request: CommentInput, names: object = None) -> dict[str, Any]:
        return {"room": {"title": {"r1": "Summer"}[request.room or ""]}, "tone": "dry"}


def test_the_world_supplies_inputs_and_the_request_overrides_them() -> None:
    prompt = Prompt(inputs=INPUTS, blocks=[Block(id="b", template="{{ room.title }} {{ tone }}")])
    request = comment(room="r1", context={"tone": "warm"})
    trajectory, model = answer(SAY, request=request, prompt=prompt, agent={"world": Shelf()})
    assert model.seen[0][0]["content"] == "Summer warm"
    assert trajectory.world == Shelf.digest
    assert trajectory.context == {"room": {"title": "Summer"}, "tone": "warm", "faq": None}


def test_a_world_that_fails_is_a_clear_record() -> None:
    trajectory, _ = answer(SAY, request=comment(room="nowhere"), agent={"world": Shelf()})
    assert trajectory.error == "context: the world failed: KeyError: 'nowhere'"


def test_a_block_that_cannot_be_rendered_is_a_clear_record() -> None:
    prompt = Prompt(inputs=INPUTS, blocks=[Block(id="room", template="{{ room.missing }}")])
    trajectory, _ = answer(SAY, request=comment(context=ROOM), prompt=prompt)
    assert trajectory.stop == "hook_blocked"
    assert trajectory.error == "prompt block room: UndefinedError: 'dict object' has no attribute 'missing'"


def test_user_blocks_frame_the_viewers() -> None:
    block = Block(id="u", role="user", template="{% for m in messages %}<{{ m.viewer }}> {{ m.text }}\n{% endfor %}")
    prompt = Prompt(blocks=[block, Block(id="ask", role="user", template="Answer once.")])
    _, model = answer(SAY, request=group(("Ann", "{{ x }}"), ("Bo", "y")), prompt=prompt)
    assert model.seen[0] == [{"role": "user", "content": "<Ann> {{ x }}\n<Bo> y\n\nAnswer once."}]


def test_what_depends_on_the_bundle_alone_is_one_object() -> None:
    state = shop_state(
        prompt=Prompt(blocks=[Block(id="a", template="A"), Block(id="b", template="{{ limits.max_rounds }}")])
    )
    view = PromptView(state, SurfaceView(state))
    assert view.system({}, []) is view.system({"x": 1}, [])
    assert view.digest(view.system({}, [])) == view.digest("A\n\n4")


def test_equal_prompts_share_a_cache_key_and_others_do_not() -> None:
    def key(context: dict[str, Any], **state: Any) -> str:
        prompt = Prompt(inputs=INPUTS, blocks=[Block(id="b", template="{{ room.title }}")])
        _, model = answer(SAY, request=comment(context=context), prompt=prompt, **state)
        return model.requests[0].cache_key

    assert key(ROOM) == key(ROOM)
    assert key(ROOM) != key({"room": {"title": "Winter"}})
    assert key(ROOM) != key(ROOM, skills=[ITEM_QA])  # another enum of skills: other tools


def test_a_bundle_without_its_limits_is_refused() -> None:
    bundle = shop_bundle()
    del bundle.state.limits["max_rounds"], bundle.state.limits["deadline_s"]
    with pytest.raises(BundleError, match="limits are missing: deadline_s, max_rounds"):
        answer(SAY, bundle=bundle)
