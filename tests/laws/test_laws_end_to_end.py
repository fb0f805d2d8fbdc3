"""On a variant, a model reads new names only: in the prompt, in what Python says, in a tool's error, in what hooks say."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import orjson
import pytest
from laws_envelopes import variants
from laws_variant import changes_of_everything, record

from harnessctl.augment.laws import Audit
from harnessctl.augment.laws.marks import shown_spans, words_of
from harnessctl.bundle import Bundle
from harnessctl.bundle.variation import variant_bundle, vary
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from harnessctl.runtime.protocols import ModelRequest
from harnessctl.runtime.surface import SurfaceView


class Reader:
    """A scripted model that keeps everything it is shown."""

    def __init__(self, replies: list[ScriptedReply]) -> None:
        self.replies = replies
        self.seen: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> ScriptedReply:
        self.seen.append(msgspec.structs.replace(request, messages=[dict(message) for message in request.messages]))
        return self.replies[len(self.seen) - 1]

    def everything(self) -> str:
        """All texts of all requests."""
        parts: list[str] = []
        for request in self.seen:
            parts += [message.get("content") or "" for message in request.messages]
            parts.append(orjson.dumps(request.tools).decode())
        return "\n".join(parts)


def carry_out(bundle: Bundle, reader: Reader) -> Any:
    async def go() -> Any:
        async with await Agent.open(bundle, ScriptedModel(reader), limits={"deadline_s": 60}) as agent:
            return await agent.run(CommentInput(id="t1", text="How much?"))

    return asyncio.run(go())


def call(name: str, **arguments: object) -> ScriptedReply:
    return ScriptedReply(tool_calls=[ScriptedCall(name, arguments)])


@pytest.fixture
def variant(bazaar: Bundle) -> Bundle:
    changes = changes_of_everything()
    state = vary(bazaar.state, changes)
    assert Audit(bazaar.state).check(record(bazaar, changes), state) == []
    return variant_bundle(bazaar, state)


def test_python_and_tool_errors_name_what_the_model_knows(variant: Bundle):
    reader = Reader(
        [
            call("open_guide", guide="thing-help"),
            call("take_all", link_id=1),
            call("take_one", ref_no=13),
            call("get_item_price", ref_no=1),
            call("show", note="n"),
            ScriptedReply(content="That is all."),
        ]
    )
    done = carry_out(variant, reader)
    assert done.stop == "replied", done.error
    told = [m["content"] for m in reader.seen[-1].messages if m["role"] == "tool"]
    assert told[1] == "Not yet. Call `take_one` and load `thing-help` before `take_all`, said `x`."
    assert "Ask `get_item_price`, or load `thing-help`; `x` is not `take_all`." in told[2]
    assert "Try `get_item_price` once." in told[2]
    assert told[3].startswith("error: ") and "see `take_one`." in told[3]
    assert told[4] == "`take_one` comes first, see `thing-help`."
    assert [c.name for c in done.tools] == ["load_skill", "get", "get_item", "get_item_price", "show"]
    assert done.tools[2].arguments == {"link_id": 13}


def test_the_skill_body_and_its_examples_are_in_new_names(variant: Bundle):
    reader = Reader([call("open_guide", guide="thing-help"), ScriptedReply(content="Fine.")])
    carry_out(variant, reader)
    body = next(m["content"] for m in reader.seen[-1].messages if m["role"] == "tool")
    assert 'assistant calls `open_guide` with {"guide":"thing-help"}' in body
    calls = [
        json.loads(line.split(" with ")[1])
        for line in body.splitlines()
        if line.startswith("assistant calls `take_one`")
    ]
    assert calls == [{"ref_no": 3, "how_many": 2}]


@pytest.mark.parametrize(
    ("name", "arguments", "notice"),
    [
        ("get_item", {"ref_no": 1}, "There is no tool `get_item`."),
        ("take_one", {"link_id": 1}, "`take_one` takes other arguments: `note`, `how_many`, `ref_no`."),
        ("open_guide", {"guide": "item-qa"}, "There is no skill `item-qa`."),
        ("open_guide", {"skill": "thing-help"}, "`open_guide` takes other arguments: `guide`."),
        ("open_guide", {"guide": "item-qa-more"}, "There is no skill `item-qa-more`."),
        ("take_one", {"how_many": 2}, "ref_no"),
    ],
)
def test_hidden_names_reach_nothing(name: str, arguments: dict, notice: str, variant: Bundle):
    reader = Reader([call(name, **arguments), call("open_guide", guide="thing-help"), ScriptedReply(content="Fine.")])
    done = carry_out(variant, reader)
    assert done.tools[0].status == "invalid"
    told = next(m["content"] for m in reader.seen[1].messages if m["role"] == "tool")
    assert notice in told
    answers = told.replace(f"`{name}`", "").replace("`item-qa`", "").replace("`item-qa-more`", "")
    assert "link_id" not in answers and "get_item`" not in answers


def test_nothing_that_a_model_is_shown_holds_a_hidden_name(bazaar: Bundle):
    """Variants of every operator, driven through each message that the project can make."""
    for made in variants(bazaar, 8, seed=4):
        state = made.bundle.state
        view = SurfaceView(state)
        guide = view.tool_name("load_skill")
        skill = next(s.name for s in state.skills if s.kind == "reply" and s.name in bazaar.inventory["skills"])

        def surfaced(tool: str, view: SurfaceView = view, **arguments: object) -> ScriptedReply:
            return call(view.tool_name(tool), **view.args_to_surface(tool, arguments))

        reader = Reader(
            [
                surfaced("load_skill", skill=skill),
                surfaced("get", link_id=1),
                surfaced("get_item", link_id=13),
                surfaced("show", note="n"),
                *[ScriptedReply(content="That is all.")] * 4,
            ]
        )
        carry_out(made.bundle, reader)
        text = reader.everything()
        hidden = {name for name, new in (state.surface.tools | state.surface.skills).items() if new != name}
        hidden |= bazaar.inventory["skills"].keys() - {s.name for s in state.skills}
        assert guide in text
        assert hidden.isdisjoint({name for _, name in shown_spans(text)})
        assert hidden.isdisjoint(words_of(text))
