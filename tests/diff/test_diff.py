"""What a person sees of a diff."""

from __future__ import annotations

import pytest
from diff_states import make_state, words

from harnessctl.bundle.files import Bundle, make_bundle
from harnessctl.bundle.state import Part, Rule, Skill
from harnessctl.bundle.text import Ref
from harnessctl.compile.change import word_diff
from harnessctl.compile.diff import diff_bundles, diff_states, moved, render_changes
from harnessctl.compile.tokens import estimate_tokens, prompt_tokens


def bundle(state=None, **outside) -> Bundle:
    return make_bundle(state or make_state(), **{"name": "live", "version": "1.0.0", **outside})


def test_a_diff_reads_well() -> None:
    old, new = make_state(), make_state({"get_product": "fetch_item"})
    old.skills[0].description = ["Answers price and size questions on an item."]
    new.skills[0].description = ["Answers price, size and stock questions on an item."]
    new.skills[0].rules.append(Rule(id="ask", text=["If two links fit, ask."]))
    new.skills[0].body[1].rules.append("ask")
    new.skills[0].rules[1].protected = True
    new.limits["max_rounds"].value = 5
    new.code["shop.tools"] = "def get_product(id):\n    return {'id': id}\n"
    text = render_changes(diff_bundles(bundle(old), bundle(new)))
    assert (
        text
        == """\
skills/item-qa
  ~ description: Answers price{+, size+} and [-size-]{+stock+} questions on an
      item.
  + rule #ask: If two links fit, ask.
  ~ rule #r1 protected: false -> true
  ~ tokens: about 104 -> 108 (+4)
tools/fetch_item
  ~ tool: renamed from get_product
limits
  ~ max_rounds/value: 4 -> 5
code/shop.tools
  ~ code:
       def get_product(id):
      -    return {}
      +    return {'id': id}
prompt
  ~ tokens: about 436 -> 438 (+2)
skills/small-talk
  ~ tokens: about 104 -> 103 (-1)
skills/after-sales
  ~ tokens: about 105 -> 104 (-1)"""
    )


def test_a_renamed_tool_and_its_references_are_one_change() -> None:
    assert [
        (c.kind, c.before, c.after) for c in diff_states(make_state(), make_state({"get_product": "fetch_item"}))
    ] == [("tool.renamed", "get_product", "fetch_item")]


def test_two_names_that_change_places_are_not_renamed() -> None:
    swapped = make_state({"move_link": "send_coupon", "send_coupon": "move_link"})
    kinds = {c.kind for c in diff_states(make_state(), swapped)}
    assert "tool.renamed" not in kinds
    assert kinds


def test_unlike_contents_are_removed_and_added() -> None:
    new = make_state()
    new.skills[2] = Skill(
        name="other", kind="reply", description=[words("other")], body=[Part(text=["Something else."])]
    )
    kinds = [(c.kind, c.at) for c in diff_states(make_state(), new)]
    assert kinds == [("skill.removed", "skills/after-sales"), ("skill.added", "skills/other")]


def test_a_reworded_rule_without_an_id_is_one_change() -> None:
    old, new = make_state(), make_state()
    for state, name, word in ((old, "r-0a1b2c3d", "short"), (new, "r-99887766", "brief")):
        state.skills[0].rules[3] = Rule(id=name, text=[f"Keep every reply {word} and true to the facts."])
        state.skills[0].body[1].rules[3] = name
    assert [(c.kind, c.at) for c in diff_states(old, new)] == [
        ("rule.reworded", "skills/item-qa/rules/r-99887766/text")
    ]


def test_a_literal_number_that_becomes_a_limit_is_a_rewording() -> None:
    old, new = make_state(), make_state()
    old.skills[0].rules[0].text = ["At most 80 characters."]
    new.skills[0].rules[0].text = ["At most ", Ref("limit", "reply_max_chars"), " characters."]
    new.skills[0].rules[0].limit = "reply_max_chars"
    changes = diff_states(old, new)
    assert [c.kind for c in changes] == ["rule.reworded", "rule.changed"]
    assert changes[0].after == "At most {limit:reply_max_chars} characters."


def test_a_code_span_that_becomes_a_reference_is_shown_apart() -> None:
    old, new = make_state(), make_state()
    old.skills[0].rules[0].text = ["Call `get_product`."]
    new.skills[0].rules[0].text = ["Call ", Ref("tool", "get_product"), "."]
    (change,) = diff_states(old, new)
    assert (change.before, change.after) == ("Call `get_product`.", "Call `tool:get_product`.")


def test_a_rule_that_moves_to_another_list_is_moved() -> None:
    def state(first: int):
        out = make_state()
        ids = out.skills[0].body[1].rules
        out.skills[0].body = [Part(rules=ids[:first]), Part(text=["between\n"]), Part(rules=ids[first:])]
        return out

    (change,) = diff_states(state(1), state(2))
    assert (change.kind, change.at, change.before, change.after) == (
        "rule.moved", "skills/item-qa/rules/r1", "list 2", "list 1",
    )  # fmt: skip
    assert "moved from list 2 to list 1" in change.render()


def test_the_order_of_rules_that_nobody_sees_is_still_a_change() -> None:
    new = make_state()
    new.skills[0].rules.reverse()
    changes = diff_states(make_state(), new)
    assert changes
    assert {c.kind for c in changes} == {"skill.changed"}


def test_true_and_1_are_not_one_value() -> None:
    old, new = make_state(), make_state()
    old.tools[0].parameters["const"], new.tools[0].parameters["const"] = 1, True
    assert [c.at for c in diff_states(old, new)] == ["tools/get_product/parameters/const"]


def test_a_null_that_is_not_a_missing_key() -> None:
    old, new = make_state(), make_state()
    new.tools[0].parameters["default"] = None
    (change,) = diff_states(old, new)
    assert change.at == "tools/get_product/parameters"
    assert "default" in change.after


def test_versions_that_change_alone_are_noted_apart() -> None:
    new = make_state()
    new.skills[0].description = ["Changed."]
    versions = {"item-qa": "1.0.0", "small-talk": "1.0.0"}
    later = {"item-qa": "1.1.0", "small-talk": "1.0.1"}
    old = bundle(inventory={"skills": versions, "prompt": {"main": ""}})
    changes = diff_bundles(old, bundle(new, version="1.1.0", inventory={"skills": later, "prompt": {"main": ""}}))
    text = render_changes(changes)
    assert text.endswith("""\
outside the digest
  ~ skills/item-qa: 1.0.0 -> 1.1.0
  ~ version: 1.0.0 -> 1.1.0
version only, the content is the same
  = skills/small-talk: 1.0.0 -> 1.0.1""")
    assert [c.outside for c in changes][-3:] == [True, True, True]


def test_tokens_are_exact_with_a_tokenizer() -> None:
    new = make_state()
    new.prompt.blocks[0].template = new.prompt.blocks[0].template + "five more words in here\n"
    (change,) = [
        c for c in diff_bundles(bundle(), bundle(new), count=lambda text: len(text.split())) if "tokens" in c.kind
    ]
    assert change.kind == "tokens.counted"
    assert change.after - change.before == 5
    assert "about" not in change.render()


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("价格", 2), ("价格abcde", 4), ("🎉", 1)]
)
def test_the_estimate_follows_its_rule(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_template_tags_are_not_counted() -> None:
    a, b = make_state(), make_state()
    b.prompt.blocks[0].template = "{% if room %}{{ room }}{% endif %}{# a remark #}" + b.prompt.blocks[0].template
    assert prompt_tokens(a) == prompt_tokens(b)


def test_the_fewest_names_move() -> None:
    assert moved(["a", "b", "c", "d"], ["d", "a", "b", "c"]) == [("d", 4, 1)]
    assert moved(["a", "b", "c"], ["b", "c"]) == []
    assert moved([], ["a"]) == []


def test_a_word_diff_keeps_chinese_and_cuts_long_stretches() -> None:
    assert word_diff("价格是十元", "价格是八元") == "价格是[-十-]{+八+}元"
    long = " ".join(f"w{n}" for n in range(60))
    assert (
        word_diff(f"{long} old", f"{long} new") == "..." + " ".join(f"w{n}" for n in range(54, 60)) + " [-old-]{+new+}"
    )
