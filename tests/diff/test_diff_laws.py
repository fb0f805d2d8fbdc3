"""Laws: whatever is edited is reported at its place, and nothing else is."""

from __future__ import annotations

import typing
from collections.abc import Callable

import msgspec
from diff_states import BLOCKS, HOOKS, SKILLS, TOOLS, make_state, words
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.bundle import state as state_module
from harnessctl.bundle.files import make_bundle, state_digest
from harnessctl.bundle.state import Block, Framing, HarnessState, Hook, Limit, Part, Rule, Skill, Tool
from harnessctl.bundle.text import Text
from harnessctl.compile.diff import diff_bundles, diff_states, render_changes
from harnessctl.compile.shown import TEXT_FIELDS

Found = set[tuple[str, str]]
Edit = Callable[[HarnessState, Callable[[str], str]], Found]

EDITS: dict[str, Edit] = {}


def edit(key: str) -> Callable[[Edit], Edit]:
    def keep(function: Edit) -> Edit:
        EDITS[key] = function
        return function

    return keep


def reworded(text: Text) -> Text:
    first = text[0]
    assert isinstance(first, str)
    head, *rest = first.split(" ")
    return [" ".join([head, "changed", *rest[1:]]), *text[1:]]


RENAMED: dict[str, str] = {
    "item-qa": "product-answers",
    "get_product": "fetch_item",
    "look-up-first": "facts-first",
    "boundary": "limits-of-speech",
    "small-talk/r2": "polite",
}
RENAME_FOUND: dict[str, Callable[[Callable[[str], str]], tuple[str, str]]] = {
    "item-qa": lambda n: ("skill.renamed", "skills/product-answers"),
    "get_product": lambda n: ("tool.renamed", "tools/fetch_item"),
    "look-up-first": lambda n: ("hook.renamed", "hooks/facts-first"),
    "boundary": lambda n: ("block.renamed", "prompt/blocks/limits-of-speech"),
    "small-talk/r2": lambda n: ("rule.renamed", f"skills/{n('small-talk')}/rules/polite"),
}


def by_name(things, name):
    return next(x for x in things if (x.id if isinstance(x, (Hook, Block)) else x.name) == name)


for _skill in SKILLS:

    @edit(f"{_skill}:reword")
    def _(state, n, skill=_skill):
        rule = by_name(state.skills, n(skill)).rules[0]
        rule.text = reworded(rule.text)
        return {("rule.reworded", f"skills/{n(skill)}/rules/{rule.id}/text")}

    @edit(f"{_skill}:attribute")
    def _(state, n, skill=_skill):
        rule = by_name(state.skills, n(skill)).rules[1]
        rule.protected, rule.after = True, None
        at = f"skills/{n(skill)}/rules/{rule.id}"
        return {("rule.changed", f"{at}/protected"), ("rule.changed", f"{at}/after")}

    @edit(f"{_skill}:add-rule")
    def _(state, n, skill=_skill):
        found = by_name(state.skills, n(skill))
        found.rules.append(Rule(id="fresh", text=[words("fresh")]))
        found.body[1].rules.append("fresh")
        return {("rule.added", f"skills/{n(skill)}/rules/fresh")}

    @edit(f"{_skill}:description")
    def _(state, n, skill=_skill):
        found = by_name(state.skills, n(skill))
        found.description = reworded(found.description)
        return {("skill.description", f"skills/{n(skill)}/description")}

    @edit(f"{_skill}:body")
    def _(state, n, skill=_skill):
        by_name(state.skills, n(skill)).body[2] = Part(text=["another end\n"])
        return {("skill.body", f"skills/{n(skill)}/body")}

    @edit(f"{_skill}:fields")
    def _(state, n, skill=_skill):
        found = by_name(state.skills, n(skill))
        found.allowed_tools = []
        found.examples[0][1].calls[0]["arguments"] = {"id": 2}
        return {
            ("skill.changed", f"skills/{n(skill)}/allowed_tools"),
            ("skill.changed", f"skills/{n(skill)}/examples"),
        }


@edit("after-sales:remove-rule")
def _(state, n):
    found = by_name(state.skills, "after-sales")
    gone = found.rules.pop(2)
    found.rules[2].requires = None
    found.body[1].rules.remove(gone.id)
    return {
        ("rule.removed", f"skills/after-sales/rules/{gone.id}"),
        ("rule.changed", f"skills/after-sales/rules/{found.rules[2].id}/requires"),
    }


@edit("item-qa:move-rule")
def _(state, n):
    found = by_name(state.skills, n("item-qa"))
    rule = found.body[1].rules.pop(3)
    found.body[1].rules.insert(0, rule)
    return {("rule.moved", f"skills/{n('item-qa')}/rules/{rule}")}


@edit("skills:add")
def _(state, n):
    state.skills.append(Skill(name="new-one", kind="reply", description=[words("newone")], body=[]))
    return {("skill.added", "skills/new-one")}


@edit("skills:move")
def _(state, n):
    found = by_name(state.skills, "after-sales")
    state.skills.remove(found)
    state.skills.insert(0, found)
    return {("skill.moved", "skills/after-sales")}


for _tool in TOOLS:

    @edit(f"{_tool}:parameters")
    def _(state, n, tool=_tool):
        found = by_name(state.tools, n(tool))
        found.parameters["properties"][f"{tool}_id"]["type"] = "string"
        found.parameters["properties"]["a/b"] = {"type": "boolean"}
        at = f"tools/{n(tool)}/parameters/properties"
        return {("tool.parameters", f"{at}/{tool}_id/type"), ("tool.parameters", f"{at}/a~1b")}

    @edit(f"{_tool}:docs")
    def _(state, n, tool=_tool):
        found = by_name(state.tools, n(tool))
        found.description = reworded(found.description)
        found.docs[f"/properties/{tool}_note"] = ["a note"]
        at = f"tools/{n(tool)}"
        return {
            ("tool.description", f"{at}/description"),
            ("tool.description", f"{at}/docs/properties/{tool}_note"),
        }

    @edit(f"{_tool}:fields")
    def _(state, n, tool=_tool):
        found = by_name(state.tools, n(tool))
        found.effect, found.retries, found.result = "write", 2, {"type": "object"}
        at = f"tools/{n(tool)}"
        return {("tool.changed", f"{at}/{field}") for field in ("effect", "retries", "result")}


@edit("tools:add")
def _(state, n):
    state.tools.insert(0, Tool(name="extra", description=[words("extra")], group="marketing"))
    return {("tool.added", "tools/extra")}


@edit("tools:move")
def _(state, n):
    state.tools.append(state.tools.pop(state.tools.index(by_name(state.tools, n("get_product")))))
    return {("tool.moved", f"tools/{n('get_product')}")}


for _hook in HOOKS:

    @edit(f"{_hook}:fields")
    def _(state, n, hook=_hook):
        found = by_name(state.hooks, n(hook))
        found.timeout_s, found.on_error = 9.0, "pass"
        return {("hook.changed", f"hooks/{n(hook)}/{field}") for field in ("timeout_s", "on_error")}

    @edit(f"{_hook}:message")
    def _(state, n, hook=_hook):
        found = by_name(state.hooks, n(hook))
        place = "otherwise" if found.otherwise else "then"
        message = getattr(found, place).message
        message.text = reworded(message.text)
        message.role = "system"
        at = f"hooks/{n(hook)}/{place}/message"
        return {("hook.changed", f"{at}/text"), ("hook.changed", f"{at}/role")}


@edit("look-up-first:check")
def _(state, n):
    by_name(state.hooks, n("look-up-first")).check["all"][0]["tool_called"]["min"] = 2
    return {("hook.changed", f"hooks/{n('look-up-first')}/check/all/0/tool_called/min")}


@edit("base:template")
def _(state, n):
    by_name(state.prompt.blocks, "base").template += "More.\n"
    return {("block.changed", "prompt/blocks/base/template")}


@edit("boundary:items")
def _(state, n):
    block = by_name(state.prompt.blocks, n("boundary"))
    block.items[0].verbatim = True
    block.items[1].text = reworded(block.items[1].text)
    at = f"prompt/blocks/{n('boundary')}/items"
    return {("rule.changed", f"{at}/b0/verbatim"), ("rule.reworded", f"{at}/b1/text")}


@edit("blocks:move")
def _(state, n):
    state.prompt.blocks.insert(0, state.prompt.blocks.pop())
    return {("block.moved", f"prompt/blocks/{BLOCKS[2]}")}


@edit("prompt:inputs")
def _(state, n):
    state.prompt.inputs["properties"]["faq"] = {"type": "array"}
    return {("prompt.inputs", "prompt/inputs/properties/faq")}


@edit("prompt:framing")
def _(state, n):
    framing = state.prompt.framing
    framing.reverse, framing.wrap, framing.lead = ["messages"], "said", reworded(framing.lead)
    return {("prompt.framing", f"prompt/framing/{field}") for field in ("reverse", "wrap", "lead")}


@edit("surface")
def _(state, n):
    state.surface.parameter_order["send_coupon"] = ["a", "b"]
    state.surface.skills["after-sales"] = "care"
    return {
        ("surface.changed", "surface/parameter_order/send_coupon"),
        ("surface.changed", "surface/skills/after-sales"),
    }


@edit("limits")
def _(state, n):
    state.limits["max_rounds"] = Limit(value=5, range=[2, 8])
    state.limits["max_turns"] = Limit(value=9)
    del state.limits["max_message_chars"]
    return {
        ("limit.changed", "limits/max_rounds/value"),
        ("limit.changed", "limits/max_rounds/range"),
        ("limit.added", "limits/max_turns"),
        ("limit.removed", "limits/max_message_chars"),
    }


@edit("harness")
def _(state, n):
    state.require_skill, state.private_when, state.session_keep = "none", "room", []
    return {("harness.changed", field) for field in ("require_skill", "private_when", "session_keep")}


@edit("outer")
def _(state, n):
    state.servers["market"]["url"] = "https://other.example/mcp"
    del state.servers["time"]
    state.code["shop.tools"] += "\n# more\n"
    state.code["shop.more"] = "x = 1\n"
    state.files["hooks/b.sh"] = "exit 2\n"
    state.surface.tools["send_coupon"] = "give_coupon"
    return {
        ("server.changed", "servers/market/url"),
        ("server.removed", "servers/time"),
        ("code.changed", "code/shop.tools"),
        ("code.added", "code/shop.more"),
        ("file.added", "files/hooks/b.sh"),
        ("surface.changed", "surface/tools/send_coupon"),
    }


@settings(max_examples=60, deadline=None)
@given(
    edits=st.lists(st.sampled_from(sorted(EDITS)), unique=True, max_size=8),
    renames=st.lists(st.sampled_from(sorted(RENAMED)), unique=True, max_size=3),
)
def test_random_edits_are_all_reported_at_their_place_and_nothing_else(edits, renames) -> None:
    names = {old: RENAMED[old] for old in renames}
    old, new = make_state(), make_state(names)

    def n(name: str) -> str:
        return names.get(name, name)

    expected: Found = {RENAME_FOUND[old](n) for old in renames}
    for key in edits:
        expected |= EDITS[key](new, n)
    found = diff_states(old, new)
    assert {(c.kind, c.at) for c in found} == expected
    assert len(found) == len(expected)
    assert bool(found) == (state_digest(old) != state_digest(new))


@settings(max_examples=20, deadline=None)
@given(edits=st.lists(st.sampled_from(sorted(EDITS)), unique=True, max_size=8))
def test_the_text_is_at_most_80_columns_and_the_order_is_stable(edits) -> None:
    old, new = make_state(), make_state()
    for key in edits:
        EDITS[key](new, lambda name: name)
    bundles = [make_bundle(x, name="live", version="1.0.0") for x in (old, new)]
    changes = diff_bundles(*bundles)
    assert changes == diff_bundles(*bundles)
    assert all(len(line) <= 80 for line in render_changes(changes).split("\n"))
    assert (
        msgspec.json.decode(msgspec.json.encode(changes), type=list[type(changes[0])] if changes else list) == changes
    )


@settings(max_examples=20, deadline=None)
@given(edits=st.lists(st.sampled_from(sorted(EDITS)), unique=True, max_size=6))
def test_a_diff_with_itself_is_empty(edits) -> None:
    state = make_state()
    for key in edits:
        EDITS[key](state, lambda name: name)
    bundle = make_bundle(state, name="live", version="1.0.0")
    assert diff_bundles(bundle, bundle) == []
    assert render_changes([]) == ""


def test_framing_that_comes_and_goes_is_shown_whole() -> None:
    old, new = make_state(), make_state()
    assert old.prompt.framing is not None
    new.prompt.framing = None
    (gone,) = diff_states(old, new)
    assert (gone.kind, gone.at, gone.after) == ("prompt.framing", "prompt/framing", None)
    assert gone.before == {"lead": "Heard by `get_product`:"}
    (come,) = diff_states(new, old)
    assert come.before is None
    old.prompt.framing = Framing()
    (bare,) = diff_states(old, new)
    assert (bare.before, bare.after) == ({}, None)


def test_every_text_of_the_state_is_shown_as_text() -> None:
    """A new field that holds a Text must be known to `harnessctl.compile.shown`."""
    for struct in vars(state_module).values():
        if not (isinstance(struct, type) and issubclass(struct, msgspec.Struct)):
            continue
        for field, hint in typing.get_type_hints(struct).items():
            if "Ref" in str(hint):
                assert field in TEXT_FIELDS, f"{struct.__name__}.{field}"
