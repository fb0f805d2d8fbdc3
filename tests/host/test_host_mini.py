"""The mini harness: its whole prompt, tools included, is under 400 tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_agent import bundle, comment, world

from harnessctl.decode.template import ChatTemplate
from harnessctl.runtime.context import ContextReader
from harnessctl.runtime.prompt import PromptView
from harnessctl.runtime.surface import SurfaceView

MOST = 400
ROOMS = ["spring-table", "desk-and-sound", "jiangnan-haowu"]


def prompt(room: str, text: str) -> str:
    """What a local model reads before it speaks: tools, system message and comment."""
    state = bundle("mini").state
    surface = SurfaceView(state)
    view = PromptView(state, surface)
    context = ContextReader(state.prompt).read(comment(text, room=room), world())
    messages = [{"viewer": "viewer", "text": text, "ts": None}]
    chat = [
        {"role": "system", "content": view.system(context, messages)},
        {"role": "user", "content": view.user(context, messages)},
    ]
    template = ChatTemplate()
    segments = [segment for message in template.render(chat, surface.tools) for segment in message]
    return "".join(segment.text for segment in [*segments, *template.reply_opening()])


@pytest.mark.parametrize("room", ROOMS)
def test_by_characters(room):
    """Text of this kind has a little over three characters a token; the next test counts them where it can."""
    assert len(prompt(room, "How much is number 5, and do you ship to Chengdu?")) < 3 * MOST


@pytest.mark.parametrize("room", ROOMS)
def test_by_the_tokenizer_of_the_small_model(room):
    tokenizers = pytest.importorskip("tokenizers")
    path = Path("~/.cache/harnessctl/models/smol/tokenizer.json").expanduser()
    if not path.is_file():
        pytest.skip("the small model is not here; `harnessctl models pull smol`")
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    for text in ("How much is number 5, and do you ship to Chengdu?", "龙井多少钱"):
        assert len(tokenizer.encode(prompt(room, text), add_special_tokens=False).ids) < MOST


def test_lists_have_the_description_before_the_name():
    text = prompt("spring-table", "hi")
    assert "\nprice, facts, offers of an item => item\n" in text
    assert text.index("price and facts of a link") < text.index("get_product")


def test_it_is_small_in_all_its_parts():
    state = bundle("mini").state
    assert 4 <= len(state.skills) <= 6
    assert 5 <= len(state.tools) <= 6
    surface = SurfaceView(state)
    for skill in state.skills:
        assert len(surface.skill_body(skill.name)) < 260, skill.name
    for tool in state.tools:
        assert len(surface.render(tool.description).split()) <= 6


def test_tools_have_the_names_of_the_large_harness():
    """So that one set of gold calls serves both."""
    large = {tool.name: tool for tool in bundle().state.tools}
    for tool in bundle("mini").state.tools:
        assert set(tool.parameters.get("properties", {})) <= set(large[tool.name].parameters.get("properties", {}))
        assert (tool.group, tool.effect) == (large[tool.name].group, large[tool.name].effect)
