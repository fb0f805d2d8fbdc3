"""A correct variant, corrupted in one way at a time: the check names the law and the place."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from laws_variant import block, changes_of_everything, hook, lane, made, rule, skill, tool

from harnessctl.augment.laws import Audit
from harnessctl.bundle import Bundle
from harnessctl.bundle.files import make_bundle
from harnessctl.bundle.state import HarnessState, Limit, Rule
from harnessctl.bundle.text import Ref
from harnessctl.bundle.variation import Changes
from harnessctl.manifests.specs.envelope import Envelope, Operator
from harnessctl.runtime.surface import SurfaceView

Corrupt = Callable[[HarnessState, Changes], object]


def test_the_variant_is_correct(bazaar: Bundle):
    variation, state = made(bazaar)
    audit = Audit(bazaar.state)
    assert audit.check(variation, state) == []
    assert audit.check(variation, state, thorough=True) == []


CORRUPTIONS: dict[str, tuple[str, str, Corrupt]] = {
    # law a
    "a property is dropped": (
        "a", "tools/get_item/parameters", lambda s, c: tool(s, "get_item").parameters["properties"].pop("note")),
    "a bound is moved": (
        "a", "tools/get_item/parameters",
        lambda s, c: tool(s, "get_item").parameters["properties"]["link_id"].update(minimum=2)),
    "true for 1": (
        "a", "tools/get_item/parameters",
        lambda s, c: tool(s, "get_item").parameters["properties"]["count"].update(enum=[True, 2, 3])),
    "a parameter is no longer required": ("a", "tools/get_item", lambda s, c: tool(s, "get_item").parameters.pop("required")),
    "a nested property is renamed": (
        "a", "tools/get_item/parameters",
        lambda s, c: tool(s, "get_item").parameters["properties"]["note"]["properties"].update(x={"type": "string"})),
    "an alternative is changed": (
        "a", "tools/get_item_price/parameters", lambda s, c: tool(s, "get_item_price").parameters["anyOf"].pop()),
    "a tool writes": ("a", "tools/get/effect", lambda s, c: setattr(tool(s, "get"), "effect", "write")),
    "a tool runs other code": ("a", "tools/get/run", lambda s, c: tool(s, "get").run.update(python="stall:show")),
    "a tool loses its tag": ("a", "tools/get_item/tags", lambda s, c: tool(s, "get_item").tags.clear()),
    "a tool is gone": ("a", "tools/show", lambda s, c: s.tools.remove(tool(s, "show"))),
    "a tool stands twice": ("a", "tools", lambda s, c: s.tools.append(tool(s, "show"))),
    "a distractor is not recorded": ("a", "tools/spare_tool", lambda s, c: c.added_tools.clear()),
    "a final tool says otherwise": ("a", "tools/item/final", lambda s, c: tool(s, "item").final.update(reply="No.")),
    "two renames are swapped": (
        "a", "surface/tools/get", lambda s, c: s.surface.tools.update(get="take_one", get_item="take_all")),
    "a parameter order is not recorded": (
        "a", "surface/parameter_order/get_item", lambda s, c: c.parameter_order.clear()),
    "a hook's check is altered": (
        "a", "hooks/first-look/check", lambda s, c: hook(s, "first-look").check["tool_called"].update(tools=["get"])),
    "a hook looks elsewhere": ("a", "hooks/again/when", lambda s, c: hook(s, "again").when.update(result=["ok"])),
    "a hook acts otherwise": ("a", "hooks/first-look/action", lambda s, c: setattr(hook(s, "first-look").otherwise, "action", "warn")),
    "a hook lets faults pass": ("a", "hooks/short/on_error", lambda s, c: setattr(hook(s, "short"), "on_error", "pass")),
    "a hook enforces nothing": ("a", "hooks/first-look/enforces", lambda s, c: hook(s, "first-look").enforces.clear()),
    "a hook is gone": ("a", "hooks", lambda s, c: s.hooks.remove(hook(s, "no-show"))),
    "hooks change places": ("a", "hooks", lambda s, c: s.hooks.reverse()),
    "retries are not the record's": (
        "a", "hooks/short/max_retries", lambda s, c: setattr(hook(s, "short").otherwise, "max_retries", 3)),
    "retries without end": (
        "a", "hooks/short/max_retries", lambda s, c: setattr(hook(s, "short").otherwise, "max_retries", None)),
    "a role is not recorded": ("a", "hooks/short/message", lambda s, c: setattr(c.hooks["short"], "role", None)),
    "a tag is not recorded": ("a", "hooks/again/message", lambda s, c: c.hooks.pop("again")),
    "an added hook is not recorded": ("a", "hooks/busy-once", lambda s, c: c.added_hooks.clear()),
    "a wording is not recorded": ("a", "skills/price/rules/look", lambda s, c: c.texts.pop("skills/price/rules/look")),
    "a wording is not the record's": (
        "a", "tools/get_item/description", lambda s, c: tool(s, "get_item").description.append(" Or so.")),
    "a verbatim rule has another wording": (
        "a", "skills/price/rules/exact",
        lambda s, c: (rule(skill(s, "price"), "exact").text.append("!"),
                      c.texts.update({"skills/price/rules/exact": list(rule(skill(s, "price"), "exact").text)}))),
    "a rule is masked in silence": (
        "a", "skills/price",
        lambda s, c: (skill(s, "price").rules.remove(rule(skill(s, "price"), "exact")),
                      lane(s, "price", "exact").remove("exact"))),
    "a rule is no longer protected": (
        "a", "skills/price/rules/look/protected", lambda s, c: setattr(rule(skill(s, "price"), "look"), "protected", False)),
    "a rule moves into another list": (
        "a", "skills/price/parts",
        lambda s, c: (lane(s, "price", "exact").remove("exact"), skill(s, "price").body[-1].rules.append("exact"))),
    "a rule stands before what it follows": (
        "a", "skills/item-qa/rules/then",
        lambda s, c: (lane(s, "item-qa", "then").sort(reverse=True),
                      c.rule_order.update({"item-qa": [*lane(s, "item-qa", "then"), "more", "said"]}))),
    "a masked rule does not hand its edge on": (
        "a", "skills/price/rules/note-0/after", lambda s, c: setattr(rule(skill(s, "price"), "note-0"), "after", None)),
    "a skill changes its kind": ("a", "skills/ask/kind", lambda s, c: setattr(skill(s, "ask"), "kind", "reply")),
    "an example is altered": (
        "a", "skills/item-qa/examples", lambda s, c: skill(s, "item-qa").examples[0][1].calls.pop()),
    "a skill is gone in silence": ("a", "skills", lambda s, c: s.skills.remove(skill(s, "ask"))),
    "a masked skill is there": ("a", "skills", lambda s, c: c.masked_skills.clear()),
    "a pinned block moves": (
        "a", "prompt/base", lambda s, c: (s.prompt.blocks.reverse(), c.block_order.reverse())),
    "a block stands before what it follows": (
        "a", "prompt/second",
        lambda s, c: (s.prompt.blocks.insert(1, s.prompt.blocks.pop(3)),
                      setattr(c, "block_order", [b.id for b in s.prompt.blocks]))),
    "a template is altered": ("a", "prompt/base/template", lambda s, c: setattr(block(s, "base"), "template", "Hello")),
    "a condition is taken off": ("a", "prompt/skills/when", lambda s, c: setattr(block(s, "skills"), "when", None)),
    "inputs are altered": ("a", "prompt/inputs", lambda s, c: s.prompt.inputs["properties"].pop("room")),
    "framing is not recorded": ("a", "prompt/framing", lambda s, c: setattr(c, "framing", None)),
    "framing turns what is no input": (
        "a", "prompt/framing/reverse",
        lambda s, c: (s.prompt.framing.reverse.append("rooms"), c.framing.reverse.append("rooms"))),
    "the route is altered": ("a", "private_when", lambda s, c: setattr(s, "private_when", "true")),
    "no skill is required": ("a", "require_skill", lambda s, c: setattr(s, "require_skill", "none")),
    "code is altered": ("a", "code/", lambda s, c: s.code.update({next(iter(s.code)): "x = 1"})),
    "code is gone": ("a", "code/", lambda s, c: s.code.pop(next(iter(s.code)))),
    "new code is not recorded": ("a", "code/spare_code", lambda s, c: c.code.clear()),
    "a description is gone": (
        "a", "tools/get_item/docs/properties/count", lambda s, c: tool(s, "get_item").docs.pop("/properties/count")),
    "an action is no longer there": (
        "a", "hooks/first-look/action", lambda s, c: setattr(hook(s, "first-look"), "otherwise", None)),
    "a message is no longer there": (
        "a", "hooks/first-look/message", lambda s, c: setattr(hook(s, "first-look").otherwise, "message", None)),
    "a hook stands twice": ("a", "hooks", lambda s, c: s.hooks.append(hook(s, "short"))),
    "an added skill is not recorded": ("a", "skills/spare-room", lambda s, c: c.added_skills.clear()),
    "a body loses a part": ("a", "skills/ask/parts", lambda s, c: skill(s, "ask").body.pop()),
    "a list is numbered": (
        "a", "skills/price/parts",
        lambda s, c: [setattr(part, "marker", "1.") for part in skill(s, "price").body if "look" in part.rules]),
    "an order of rules is not recorded": ("a", "skills/item-qa/parts", lambda s, c: c.rule_order.clear()),
    "an order of items is not recorded": ("a", "prompt/always/items", lambda s, c: c.item_order.clear()),
    "an order of tools is not recorded": ("a", "tools", lambda s, c: c.tool_order.clear()),
    "a rule is made up": (
        "a", "skills/ask/rules/made-up", lambda s, c: skill(s, "ask").rules.append(Rule(id="made-up", text=["Lie."]))),
    "a masked rule is there": ("a", "skills/ask/rules/exact", lambda s, c: c.masked_rules["ask"].append("exact")),
    "a rule stands twice": ("a", "skills/ask/rules", lambda s, c: skill(s, "ask").rules.append(skill(s, "ask").rules[0])),
    "a block is gone": ("a", "prompt", lambda s, c: s.prompt.blocks.remove(block(s, "third"))),
    "a renaming of parameters is not recorded": (
        "a", "surface/parameters/get_item_price", lambda s, c: c.parameters.pop("get_item_price")),
    "no tag": (
        "a", "hooks/again/message",
        lambda s, c: [setattr(o, "wrap", "no tag") for o in (hook(s, "again").then.message, c.hooks["again"])]),
    "framing has no tag": (
        "a", "prompt/framing/wrap", lambda s, c: [setattr(o, "wrap", "no tag") for o in (s.prompt.framing, c.framing)]),
    # law b
    "a template's skill is masked": (
        "b", "prompt/base/template", lambda s, c: (s.skills.remove(skill(s, "item-qa")), c.masked_skills.append("item-qa"))),
    "a parameter is called what a code span says": (
        "b", "surface/parameters/get_item_price",
        lambda s, c: [m["get_item_price"].update(count="x") for m in (s.surface.parameters, c.parameters)]),
    "a hook's message names a masked skill": (
        "b", "hooks/first-look/message", lambda s, c: _say(s, c, [Ref("skill", "item-qa-more")])),
    "a reference to nothing": ("b", "hooks/first-look/message", lambda s, c: _say(s, c, [Ref("tool", "gett")])),
    "a hook's message names a masked rule": (
        "b", "hooks/first-look/message", lambda s, c: _say(s, c, [Ref("rule", "look")])),
    "a canonical name in a hook's message": (
        "b", "hooks/first-look/message", lambda s, c: _say(s, c, ["Call get_item first."])),
    "a canonical name in a code span": ("b", "hooks/first-look/message", lambda s, c: _say(s, c, ["Call `get` first."])),
    "a canonical name in a longer code span": (
        "b", "hooks/first-look/message", lambda s, c: _say(s, c, ["Call `get_item(3)` first."])),
    "a canonical name behind a dot": ("b", "hooks/first-look/message", lambda s, c: _say(s, c, ["See stall.get_item."])),
    "a canonical name in Chinese": ("b", "hooks/first-look/message", lambda s, c: _say(s, c, ["先调用get_item再说"])),
    "a canonical name in a fence": (
        "b", "hooks/first-look/message", lambda s, c: _say(s, c, ["```\nget_item\n```"])),
    "a masked skill's name": ("b", "hooks/first-look/message", lambda s, c: _say(s, c, ["See item-qa-more."])),
    "a reference is swallowed": (
        "b", "hooks/first-look/message", lambda s, c: _say(s, c, ["see `x ", Ref("tool", "get_item")])),
    "a rule refers to a masked one": (
        "b", "skills/price/rules/ask",
        lambda s, c: _reword(s, c, "price", "ask", ["See ", Ref("rule", "then"), "."])),
    "an item refers to a masked one": (
        "b", "prompt/always/items/honest", lambda s, c: _item(s, c, ["See ", Ref("rule", "asked"), "."])),
    "a description names a hidden parameter": (
        "b", "tools/get_item/docs", lambda s, c: _doc(s, c, ["Not `how_many`, but count, is `link_id`."])),
    "the lead names a tool": ("b", "prompt/framing/lead", lambda s, c: _lead(s, c, ["Look at get_item:"])),
    "the lead refers to nothing": ("b", "prompt/framing/lead", lambda s, c: _lead(s, c, [Ref("skill", "item-qa-more")])),
    "added code names a hidden parameter": (
        "b", "code/spare_code", lambda s, c: _code(s, c, "def busy(names):\n    return 'Give `skill` first.'\n")),
    "added code names a masked skill": (
        "b", "code/spare_code", lambda s, c: _code(s, c, "def busy(names):\n    return 'See `skill:item-qa-more`.'\n")),
    "a code span is captured": ("b", "surface/tools/get", lambda s, c: _rename(s, c, "get", "x")),
    "a new name is another's canonical name": ("b", "surface/tools/get", lambda s, c: _rename(s, c, "get", "item-qa-more")),
    "a new name is a parameter's": ("b", "surface/tools/get", lambda s, c: _rename(s, c, "get", "link_id")),
    "a new name is in a text": ("b", "hooks/first-look/message", lambda s, c: _say(s, c, ["What take_all means."])),
    "a tool and a skill are shown as one": ("b", "surface/skills/ask", lambda s, c: _rename_skill(s, c, "ask", "open-guide")),
    "a parameter has a tool's name": (
        "b", "surface/parameters/get_item_price",
        lambda s, c: [m["get_item_price"].update(count="take_all") for m in (s.surface.parameters, c.parameters)]),
    # law c
    "two tools are shown as one": ("c", "surface", lambda s, c: _rename(s, c, "get", "take_one")),
    "names change places": (
        "c", "surface/tools/get",
        lambda s, c: [m.update(get="get_item", get_item="get") for m in (s.surface.tools, c.tools)]),
    "skills change places": (
        "c", "surface/skills/price",
        lambda s, c: [m.update({"price": "item-qa", "item-qa": "price"}) for m in (s.surface.skills, c.skills)]),
    "parameters change places": (
        "c", "surface/parameters/get_item",
        lambda s, c: [m["get_item"].update(link_id="count", count="link_id") for m in (s.surface.parameters, c.parameters)]),
    "two parameters are shown as one": (
        "c", "surface",
        lambda s, c: [m["get_item"].update(count="ref_no") for m in (s.surface.parameters, c.parameters)]),
    "a name that no model can call": ("c", "surface/tools/get", lambda s, c: _rename(s, c, "get", "take all")),
    "a name that is too long": ("c", "surface/tools/get", lambda s, c: _rename(s, c, "get", "t" * 65)),
    "a skill's name is no slug": ("c", "surface/skills/ask", lambda s, c: _rename_skill(s, c, "ask", "Ask_Me")),
    "a masked skill has a name": (
        "c", "surface/skills/item-qa-more", lambda s, c: s.surface.skills.update({"item-qa-more": "more-help"})),
    "a parameter that is not there has a name": (
        "c", "surface/parameters/get/nothing",
        lambda s, c: [m.update(get={"nothing": "some"}) for m in (s.surface.parameters, c.parameters)]),
    "a tool that is not there has a name": ("c", "surface/tools/gone", lambda s, c: s.surface.tools.update(gone="went")),
    "parameters of a tool that is not there": (
        "c", "surface/parameters/gone", lambda s, c: s.surface.parameters.update(gone={"x": "y"})),
    "a parameter's name is none": (
        "c", "surface/parameters/get_item_price",
        lambda s, c: [m["get_item_price"].update(count="how many") for m in (s.surface.parameters, c.parameters)]),
    # law d
    "a protected rule is masked": ("d", "skills/price/rules/look", lambda s, c: c.masked_rules["price"].append("look")),
    "a required rule is masked": ("d", "skills/price/rules/note-0", lambda s, c: c.masked_rules["price"].append("note-0")),
    "a protected item is masked": ("d", "prompt/always/items/honest", lambda s, c: c.masked_items["always"].append("honest")),
    "a required item is masked": ("d", "prompt/always/items/brief", lambda s, c: c.masked_items["always"].append("brief")),
    "every reply skill is masked": (
        "d", "skills", lambda s, c: (c.masked_skills.extend(["price", "item-qa"]), s.skills.__setitem__(slice(None), [skill(s, "ask")]))),
    # law e
    "a limit is out of its range": ("e", "limits/reply_max_chars", lambda s, c: _limit(s, c, "reply_max_chars", 121)),
    "a count is no whole number": ("e", "limits/max_rounds", lambda s, c: _limit(s, c, "max_rounds", 4.5)),
    "a limit without a range is moved": ("e", "limits/deadline_s", lambda s, c: _limit(s, c, "deadline_s", 14)),
    "a range is moved": (
        "e", "limits/max_rounds", lambda s, c: s.limits.update(max_rounds=Limit(value=6, range=[1, 9], unit=s.limits["max_rounds"].unit))),
    "a limit is not the record's": ("e", "limits/reply_max_chars", lambda s, c: c.limits.update(reply_max_chars=99)),
    "a limit is gone": ("e", "limits/discount", lambda s, c: s.limits.pop("discount")),
    "a text no longer cites its limit": (
        "e", "skills/price/rules/short", lambda s, c: _reword(s, c, "price", "short", ["Reply in at most 80 characters."])),
    "a text cites another limit": (
        "e", "prompt/third/items/three",
        lambda s, c: (setattr(rule(block(s, "third"), "three"), "text", ["Half is ", Ref("limit", "max_rounds")]),
                      c.texts.update({"prompt/third/items/three": ["Half is ", Ref("limit", "max_rounds")]}))),
}  # fmt: skip


def _say(state: HarnessState, changes: Changes, text: list) -> None:
    hook(state, "first-look").otherwise.message.text = text
    changes.texts["hooks/first-look/message"] = list(text)


def _reword(state: HarnessState, changes: Changes, owner: str, name: str, text: list) -> None:
    rule(skill(state, owner), name).text = text
    changes.texts[f"skills/{owner}/rules/{name}"] = list(text)


def _item(state: HarnessState, changes: Changes, text: list) -> None:
    rule(block(state, "always"), "honest").text = text
    changes.texts["prompt/always/items/honest"] = list(text)


def _doc(state: HarnessState, changes: Changes, text: list) -> None:
    tool(state, "get_item").docs["/properties/link_id"] = text
    changes.texts["tools/get_item/docs/properties/link_id"] = list(text)


def _lead(state: HarnessState, changes: Changes, text: list) -> None:
    state.prompt.framing.lead = text
    changes.framing.lead = list(text)


def _code(state: HarnessState, changes: Changes, source: str) -> None:
    state.code["spare_code"] = changes.code["spare_code"] = source


def _rename(state: HarnessState, changes: Changes, name: str, new: str) -> None:
    state.surface.tools[name] = changes.tools[name] = new


def _rename_skill(state: HarnessState, changes: Changes, name: str, new: str) -> None:
    if new == "open-guide":
        _rename(state, changes, "load_skill", new)
    state.surface.skills[name] = changes.skills[name] = new


def _limit(state: HarnessState, changes: Changes, name: str, value: float) -> None:
    state.limits[name].value = value
    changes.limits[name] = value


@pytest.mark.parametrize("what", CORRUPTIONS)
def test_a_corruption_is_named_with_law_and_place(what: str, bazaar: Bundle):
    law, place, corrupt = CORRUPTIONS[what]
    variation, state = made(bazaar)
    corrupt(state, variation.changes)
    audit = Audit(bazaar.state)
    found = audit.check(variation, state)
    assert any(broken.law == law and broken.place.startswith(place) for broken in found), [str(b) for b in found]
    assert all(broken.reason for broken in found)
    seen = {broken for broken in audit.check(variation, state, thorough=True) if not broken.place.startswith("seen/")}
    assert seen >= set(found)


def test_an_envelope_narrows_a_range(bazaar: Bundle):
    variation, state = made(bazaar)
    envelope = Envelope(
        api_version="harnessctl/v1",
        kind="Envelope",
        name="narrow",
        version="1.0.0",
        operators={"limit-perturb": Operator(ranges={"reply_max_chars": [70, 90]})},
    )
    (broken,) = Audit(bazaar.state, envelope).check(variation, state)
    assert (broken.law, broken.place) == ("e", "limits/reply_max_chars")
    assert broken.reason == "is 100, outside the envelope's 70 to 90"


def test_an_item_stands_before_what_it_follows(bazaar: Bundle):
    changes = changes_of_everything()
    changes.masked_items.clear()
    changes.item_order = {"always": ["shown", "honest", "brief", "asked", "never"]}
    (broken,) = Audit(bazaar.state).check(*made(bazaar, changes))
    assert (broken.law, broken.place) == ("a", "prompt/always/items/shown")
    assert broken.reason == "stands before honest, which it is to stand after"


def test_of_a_masked_rule_the_edge_still_holds(bazaar: Bundle):
    changes = Changes(
        masked_rules={"price": ["then"]},
        rule_order={"price": ["note-0", "look", "short", "ask", "exact", "more", "said"]},
    )
    found = Audit(bazaar.state).check(*made(bazaar, changes))
    assert [(b.law, b.place, b.reason) for b in found] == [
        ("a", "skills/price/rules/note-0", "stands before look, which it is to stand after")
    ]


def test_two_laws_broken_are_two_findings(bazaar: Bundle):
    variation, state = made(bazaar)
    _limit(state, variation.changes, "reply_max_chars", 121)
    _say(state, variation.changes, ["Call get_item."])
    assert {broken.law for broken in Audit(bazaar.state).check(variation, state)} == {"b", "e"}


def test_a_finding_reads_well(bazaar: Bundle):
    variation, state = made(bazaar)
    _say(state, variation.changes, ["Call get_item."])
    (broken,) = Audit(bazaar.state).check(variation, state)
    assert str(broken) == ("law b (references): hooks/first-look/message: names get_item, which is shown as `take_one`")


def altered(parent: Bundle, alter: Callable[[HarnessState], object]) -> Bundle:
    """The hostile project with its state altered: what the compiler would not have let through, or a server wrote."""
    state = msgspec.json.decode(msgspec.json.encode(parent.state), type=HarnessState)
    alter(state)
    return make_bundle(state, name="altered", version="1.0.0")


def test_an_example_loads_a_masked_skill(bazaar: Bundle):
    parent = altered(
        bazaar, lambda s: skill(s, "item-qa").examples[0][1].calls[0]["arguments"].update(skill="item-qa-more")
    )
    (broken,) = Audit(parent.state).check(*made(parent, Changes(masked_skills=["item-qa-more"])))
    assert (broken.law, broken.place) == ("b", "skills/item-qa/examples/0/1")
    assert broken.reason == "loads item-qa-more, which is not there"


def test_an_argument_of_an_example_names_a_hidden_tool(bazaar: Bundle):
    parent = altered(
        bazaar, lambda s: skill(s, "item-qa").examples[0][1].calls[1]["arguments"].update(note="as get_item")
    )
    (broken,) = Audit(parent.state).check(*made(parent, Changes(tools={"get_item": "take_one"})))
    assert (broken.law, broken.place) == ("b", "skills/item-qa/examples/0/1")


def test_a_check_without_a_message_is_told_with_the_names_in_it(bazaar: Bundle):
    def quiet(state: HarnessState) -> None:
        hook(state, "no-show").check = {"expr": "calls('get_item_price') | length < 9"}
        hook(state, "no-show").otherwise.message = None

    parent = altered(bazaar, quiet)
    (broken,) = Audit(parent.state).check(*made(parent, Changes(tools={"get_item_price": "take_cost"})))
    assert (broken.law, broken.place) == ("b", "hooks/no-show/check")


def test_a_skill_that_a_check_asks_for_is_not_masked(bazaar: Bundle):
    parent = altered(
        bazaar, lambda s: setattr(hook(s, "no-show"), "check", {"skill_loaded": {"skill": "item-qa-more"}})
    )
    (broken,) = Audit(parent.state).check(*made(parent, Changes(masked_skills=["item-qa-more"])))
    assert (broken.law, broken.place) == ("d", "skills/item-qa-more")


def test_python_that_names_a_masked_skill_in_a_code_span(bazaar: Bundle):
    parent = altered(bazaar, lambda s: s.code.update(extra="def f(names):\n    return 'Load `item-qa-more`.'\n"))
    (broken,) = Audit(parent.state).check(*made(parent, Changes(masked_skills=["item-qa-more"])))
    assert (broken.law, broken.place) == ("b", "code/extra")


def test_a_view_that_shows_other_arguments_is_found_out(bazaar: Bundle, monkeypatch: pytest.MonkeyPatch):
    """The law looks at what the runtime does, not at what it should do."""
    monkeypatch.setattr(SurfaceView, "args_to_surface", lambda self, tool, args: dict(args))
    found = Audit(bazaar.state).check(*made(bazaar))
    assert {broken.law for broken in found} == {"c"}
    assert {broken.place for broken in found} == {
        "surface/parameters/get_item",
        "surface/parameters/get_item_price",
        "surface/parameters/load_skill",
        "tools/load_skill/parameters",
    }


def test_a_view_that_shows_another_schema_is_found_out(bazaar: Bundle, monkeypatch: pytest.MonkeyPatch):
    original = SurfaceView.__init__

    def careless(self: SurfaceView, state: HarnessState) -> None:
        original(self, state)
        for shown in self.tools:
            shown["function"]["parameters"].pop("required", None)

    variation, state = made(bazaar)
    audit = Audit(bazaar.state)
    monkeypatch.setattr(SurfaceView, "__init__", careless)
    found = audit.check(variation, state)
    assert ("a", "tools/get_item/parameters/required") in {(broken.law, broken.place) for broken in found}
