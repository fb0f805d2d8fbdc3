"""Variants are made of their parent and the changes alone, no change is lost, and a record gives its variant again."""

from __future__ import annotations

import copy

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.bundle import HarnessState, make_bundle
from harnessctl.bundle.state import (
    Action,
    Block,
    Framing,
    Hook,
    Limit,
    Message,
    Part,
    Prompt,
    Rule,
    Skill,
    Surface,
    Tool,
)
from harnessctl.bundle.text import Ref
from harnessctl.bundle.variation import Changes, HookChange, Variation, rebuild, variant_bundle, vary
from harnessctl.errors import BundleError
from harnessctl.storage import canonical_json


def parent() -> HarnessState:
    rules = [
        Rule(id="look", text=["Call ", Ref("tool", "get"), "."]),
        Rule(id="say", text=["Say it."], after="look"),
        Rule(id="stop", text=["Stop."], after="say"),
        Rule(id="short", text=["At most ", Ref("limit", "chars"), "."]),
    ]
    body = [Part(text=["First.\n"], rules=["look", "say", "stop"]), Part(text=["Then.\n"], rules=["short"])]
    return HarnessState(
        skills=[
            Skill(name="qa", kind="reply", description=["Answers."], body=body, rules=rules),
            Skill(name="chat", kind="reply", description=["Chats."], body=[Part(text=["Chat."])]),
        ],
        tools=[
            Tool(
                name="get",
                description=["Gets."],
                group="retrieval",
                parameters={"type": "object", "properties": {"id": {}, "size": {}, "colour": {}}},
                docs={"/properties/id": ["The id."]},
            ),
            Tool(name="put", description=["Puts."], group="commerce", effect="write"),
        ],
        hooks=[
            Hook(id="long", event="stop", check={"max_chars": 9}, otherwise=retry("Too long.")),
            Hook(id="note", event="post_tool", then=Action(action="retry", message=Message(text=["Noted."]))),
            Hook(id="quiet", event="end", observe={"python": "m:f"}),
            Hook(id="dumb", event="stop", check={"max_chars": 9}, otherwise=Action(action="warn")),
        ],
        prompt=Prompt(
            inputs={"type": "object", "properties": {"actions": {"type": "array"}}},
            blocks=[
                Block(id="base", template="You help."),
                Block(id="law", heading=["## Law"], items=[Rule(id=x, text=[f"Mind {x}."]) for x in "abc"]),
            ],
        ),
        limits={"chars": Limit(value=80, range=[60, 90])},
        code={"m": "def f(names): ..."},
        surface=Surface(tools={"put": "place"}),
    )


def retry(text: str) -> Action:
    return Action(action="retry", max_retries=2, message=Message(text=[text], wrap="note"))


EVERYTHING = Changes(
    tools={"get": "fetch"},
    skills={"qa": "ask-me"},
    parameters={"get": {"id": "key"}},
    masked_skills=["chat"],
    masked_rules={"qa": ["say"]},
    masked_items={"law": ["b"]},
    texts={
        "skills/qa/description": ["Replies."],
        "skills/qa/rules/look": ["Use ", Ref("tool", "get"), "."],
        "skills/qa/parts/0": ["To begin.\n"],
        "tools/get/description": ["Fetches."],
        "tools/get/docs/properties/id": ["Its id."],
        "prompt/law/heading": ["## Rules"],
        "prompt/law/items/a": ["Heed a."],
        "hooks/long/message": ["Shorter."],
        "hooks/note/message": ["Seen."],
    },
    skill_order=["more", "qa"],
    tool_order=["put", "far", "get"],
    block_order=["law", "base"],
    rule_order={"qa": ["short", "stop", "look"]},
    item_order={"law": ["c", "a"]},
    parameter_order={"get": ["size", "colour", "id"]},
    limits={"chars": 70},
    added_skills=[Skill(name="more", kind="reply", description=["More."], body=[])],
    added_tools=[Tool(name="far", description=["Far."], group="x", run={"python": "extra:f"})],
    added_hooks=[Hook(id="wait", event="stop", check={"python": "extra:f"}, otherwise=Action(action="warn"))],
    hooks={"long": HookChange(max_retries=1, role="system", wrap="")},
    code={"extra": "def f(): ..."},
    framing=Framing(reverse=["messages", "actions"], lead=["New:"], wrap="input"),
)


def test_every_change_is_in_the_variant() -> None:
    state = vary(parent(), EVERYTHING)
    more, qa = state.skills
    assert (more.name, qa.name, qa.description) == ("more", "qa", ["Replies."])
    assert [part.rules for part in qa.body] == [["stop", "look"], ["short"]]
    assert qa.body[0].text == ["To begin.\n"]
    assert [rule.id for rule in qa.rules] == ["look", "stop", "short"]
    assert qa.rules[0].text == ["Use ", Ref("tool", "get"), "."]
    assert qa.rules[1].after == "look", "the edge of the masked rule is handed on"
    assert [tool.name for tool in state.tools] == ["put", "far", "get"]
    assert (state.tools[2].description, state.tools[2].docs) == (["Fetches."], {"/properties/id": ["Its id."]})
    assert [block.id for block in state.prompt.blocks] == ["law", "base"]
    law = state.prompt.blocks[0]
    assert law.heading == ["## Rules"]
    assert [(item.id, item.text) for item in law.items] == [("c", ["Mind c."]), ("a", ["Heed a."])]
    assert state.limits["chars"] == Limit(value=70, range=[60, 90])
    long, note, _, _, wait = state.hooks
    assert long.otherwise == Action(
        action="retry", max_retries=1, message=Message(text=["Shorter."], role="system", wrap=None)
    )
    assert note.then is not None
    assert note.then.message == Message(text=["Seen."])
    assert wait.id == "wait"
    assert state.code == {"m": "def f(names): ...", "extra": "def f(): ..."}
    assert state.surface.tools == {"put": "place", "get": "fetch"}
    assert state.surface.skills == {"qa": "ask-me"}
    assert state.surface.parameters == {"get": {"id": "key"}}
    assert state.surface.parameter_order == {"get": ["size", "colour", "id"]}
    assert state.prompt.framing == EVERYTHING.framing


def test_no_change_makes_the_parent_again() -> None:
    bundle = make_bundle(parent(), name="shop", version="1.0.0", inventory={"skills": {"qa": "1.0.0"}}, world="room")
    variant = variant_bundle(bundle, vary(bundle.state, Changes()))
    assert variant == bundle


def test_the_parent_is_left_as_it_was_and_what_does_not_change_is_shared() -> None:
    state = parent()
    before = canonical_json(msgspec.to_builtins(state))
    variant = vary(state, EVERYTHING)
    assert canonical_json(msgspec.to_builtins(state)) == before
    assert next(tool for tool in variant.tools if tool.name == "put") is state.tools[1]
    assert variant.hooks[2] is state.hooks[2]
    assert next(block for block in variant.prompt.blocks if block.id == "base") is state.prompt.blocks[0]


def test_a_variant_can_be_varied_again() -> None:
    once = vary(parent(), EVERYTHING)
    twice = vary(once, Changes(tools={"far": "distant"}, framing=Framing(), limits={"chars": 60}))
    assert twice.surface.tools == {"put": "place", "get": "fetch", "far": "distant"}
    assert twice.prompt.framing == Framing()
    assert twice.limits["chars"].value == 60
    assert [part.rules for part in twice.skills[1].body] == [["stop", "look"], ["short"]]


def record(changes: Changes) -> tuple[Variation, bytes]:
    bundle = make_bundle(parent(), name="shop", version="1.0.0")
    variant = variant_bundle(bundle, vary(bundle.state, changes))
    variation = Variation(
        parent=bundle.digest,
        variant=variant.digest,
        harness="shop",
        envelope="wide-1.0.0",
        envelope_digest="0" * 64,
        seed=7,
        number=3,
        changes=changes,
    )
    return variation, canonical_json(msgspec.to_builtins(variant))


def test_a_record_gives_its_variant_again_byte_for_byte() -> None:
    variation, variant = record(EVERYTHING)
    read = msgspec.json.decode(msgspec.json.encode(variation), type=Variation)
    again = rebuild(make_bundle(parent(), name="shop", version="1.0.0"), read)
    assert canonical_json(msgspec.to_builtins(again)) == variant


def test_a_record_of_another_parent_is_refused() -> None:
    variation, _ = record(EVERYTHING)
    other = make_bundle(vary(parent(), Changes(limits={"chars": 61})), name="shop", version="1.0.0")
    with pytest.raises(BundleError, match=f"of a variant of {variation.parent[:12]}; got shop {other.digest[:12]}"):
        rebuild(other, variation)


def test_an_altered_record_is_refused() -> None:
    variation, _ = record(EVERYTHING)
    variation.changes = copy.deepcopy(variation.changes)
    variation.changes.limits["chars"] = 71
    with pytest.raises(BundleError, match="the rebuilt variant has the digest"):
        rebuild(make_bundle(parent(), name="shop", version="1.0.0"), variation)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (Changes(tools={"gone": "x"}), "gone"),
        (Changes(skills={"gone": "x"}), "gone"),
        (Changes(parameters={"gone": {"a": "b"}}), "gone"),
        (Changes(parameters={"get": {"id": "a", "gone": "b"}}), "get#gone"),
        (Changes(parameters={"put": {"id": "a"}}), "put#id"),
        (Changes(masked_skills=["gone"]), "gone"),
        (Changes(masked_rules={"qa": ["gone"]}), "qa#gone"),
        (Changes(masked_rules={"gone": []}), "gone"),
        (Changes(masked_items={"law": ["gone"]}), "law#gone"),
        (Changes(item_order={"gone": []}), "gone"),
        (Changes(limits={"gone": 1}), "gone"),
        (Changes(hooks={"gone": HookChange(max_retries=1)}), "gone"),
        (Changes(hooks={"quiet": HookChange(max_retries=1)}), "quiet"),
        (Changes(hooks={"dumb": HookChange(wrap="x")}), "dumb"),
        (Changes(hooks={"dumb": HookChange(role="user")}), "dumb"),
        (Changes(hooks={"note": HookChange(max_retries=1)}), "note"),
        (Changes(framing=Framing(reverse=["history"])), "history"),
        (Changes(texts={"skills/gone/description": ["x"]}), "skills/gone/description"),
        (Changes(texts={"skills/qa": ["x"]}), "skills/qa"),
        (Changes(texts={"skills": ["x"]}), "skills"),
        (Changes(texts={"": ["x"]}), "state does not have"),
        (Changes(texts={"skills/qa/rules/gone": ["x"]}), "skills/qa/rules/gone"),
        (Changes(texts={"skills/qa/items/look": ["x"]}), "skills/qa/items/look"),
        (Changes(texts={"skills/qa/parts/2": ["x"]}), "skills/qa/parts/2"),
        (Changes(texts={"skills/qa/parts/00": ["x"]}), "skills/qa/parts/00"),
        (Changes(texts={"skills/qa/parts/x": ["x"]}), "skills/qa/parts/x"),
        (Changes(texts={"tools/get/docs/properties/size": ["x"]}), "tools/get/docs/properties/size"),
        (Changes(texts={"tools/get/name": ["x"]}), "tools/get/name"),
        (Changes(texts={"prompt/law/rules/a": ["x"]}), "prompt/law/rules/a"),
        (Changes(texts={"prompt/law/items/d": ["x"]}), "prompt/law/items/d"),
        (Changes(texts={"hooks/dumb/message": ["x"]}), "hooks/dumb/message"),
        (Changes(texts={"hooks/long/text": ["x"]}), "hooks/long/text"),
        (Changes(texts={"else/qa/description": ["x"]}), "else/qa/description"),
        (Changes(skill_order=["qa"]), "an order lists qa; there are chat, qa"),
        (Changes(tool_order=["get", "get"]), "an order lists get, get"),
        (Changes(tool_order=["get", "put", "put"]), "an order lists get, put, put"),
        (Changes(block_order=["base", "law", "more"]), "an order lists base, law, more"),
        (Changes(item_order={"law": ["a", "b"]}), "an order lists a, b"),
        (Changes(masked_items={"law": ["a"]}, item_order={"law": ["a", "b", "c"]}), "an order lists a, b, c"),
        (Changes(rule_order={"qa": ["look"]}), "an order of the rules of qa lists look"),
        (Changes(rule_order={"qa": ["look", "say", "stop", "short", "short"]}), "order of the rules of qa"),
        (
            Changes(masked_rules={"qa": ["say"]}, rule_order={"qa": ["look", "say", "stop", "short"]}),
            "order of the rules",
        ),
        (Changes(parameter_order={"get": ["id", "size"]}), "order of the parameters of get lists id, size"),
        (Changes(parameter_order={"gone": ["id"]}), "order of the parameters of gone"),
        (Changes(added_tools=[Tool(name="get", description=[], group="x")]), "has already: get"),
        (Changes(added_tools=[Tool(name="n", description=[], group="x")] * 2), "has already: n"),
        (Changes(added_skills=[Skill(name="qa", kind="reply", description=[], body=[])]), "has already: qa"),
        (Changes(added_hooks=[Hook(id="long", event="end")]), "has already: long"),
        (Changes(code={"m": "other"}), "has already: m"),
    ],
)
def test_what_the_state_does_not_fit_is_refused(changes: Changes, says: str) -> None:
    with pytest.raises(BundleError) as error:
        vary(parent(), changes)
    assert says in error.value.message


@settings(max_examples=60, deadline=None)
@given(
    rules=st.permutations(["look", "say", "stop", "short"]),
    masked=st.sets(st.sampled_from(["look", "say", "stop"])),
    items=st.permutations(["a", "b", "c"]),
    tools=st.permutations(["get", "put"]),
)
def test_an_order_and_a_mask_lose_nothing_else(
    rules: list[str], masked: set[str], items: list[str], tools: list[str]
) -> None:
    left = [rule for rule in rules if rule not in masked]
    changes = Changes(
        masked_rules={"qa": sorted(masked)}, rule_order={"qa": left}, item_order={"law": items}, tool_order=tools
    )
    state = vary(parent(), changes)
    qa = state.skills[0]
    assert [rule for part in qa.body for rule in part.rules] == [r for r in left if r != "short"] + ["short"]
    assert [item.id for item in state.prompt.blocks[1].items] == items
    assert [tool.name for tool in state.tools] == tools
    ids = {rule.id for rule in qa.rules}
    assert ids == {"look", "say", "stop", "short"} - masked
    assert all(rule.after is None or rule.after in ids for rule in qa.rules)
    assert msgspec.convert(msgspec.to_builtins(state), HarnessState) == state
