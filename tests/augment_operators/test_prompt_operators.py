"""Blocks and items: other orders, words and gaps; and limits moved in their ranges."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from operator_trial import apply, draft_of, operator, rule, seen, state_of, varied

from harnessctl.augment.laws import Audit
from harnessctl.bundle.state import Action, Block, Framing, Hook, Limit, Message, Part, Skill
from harnessctl.bundle.text import Ref
from harnessctl.bundle.variation import Changes, Variation, vary
from harnessctl.records.scenario import Needs
from harnessctl.runtime.surface import SurfaceView

PROMPT = state_of(
    blocks=[
        Block(id="base", template="Base.", pin=True),
        Block(id="one", template="1"),
        Block(id="two", template="2", after="one"),
        Block(id="three", template="3"),
        Block(id="said", role="user", template="{{ messages[0].text }}"),
        Block(id="four", template="4"),
        Block(id="end", role="user", template="End.", pin=True),
        Block(id="more", role="user", template="More."),
    ]
)


def test_blocks_move_within_their_role_around_what_is_pinned() -> None:
    orders = {tuple(b.id for b in varied("block-reorder", PROMPT, number=n).prompt.blocks) for n in range(120)}
    assert len(orders) == 23, "12 orders of the system blocks times 2 of the user's, without the parent's"
    for order in orders:
        assert order[0] == "base"
        assert order[6] == "end"
        assert {order[4], order[7]} == {"said", "more"}
        assert order.index("one") < order.index("two")


def test_a_prompt_whose_blocks_cannot_move_is_no_target() -> None:
    pinned = state_of(blocks=[Block(id="a", template="A", pin=True), Block(id="b", template="B")])
    roles = state_of(blocks=[Block(id="a", template="A"), Block(id="b", role="user", template="B")])
    chain = state_of(blocks=[Block(id="a", template="A"), Block(id="b", template="B", after="a")])
    assert operator("block-reorder").targets(draft_of(pinned)) == ()
    assert operator("block-reorder").targets(draft_of(roles)) == ()
    assert apply("block-reorder", draft_of(chain)) == []


def items(*rules: object, heading: str = "## Law") -> Block:
    return Block(id="law", heading=[heading], items=list(rules))  # type: ignore[arg-type]


LAW = state_of(
    blocks=[
        items(
            rule("first", protected=True),
            rule("second", after="first", verbatim=True),
            rule("third", after="second"),
            rule("needed"),
            rule("needing", requires="needed"),
            rule("named"),
            rule("naming", ["See ", Ref("rule", "named"), "."]),
            rule("limited", ["At most ", Ref("limit", "chars"), "."], limit="chars"),
        )
    ],
    limits={"chars": Limit(value=80, range=[60, 90])},
)


def test_items_change_places_behind_what_they_follow() -> None:
    for number in range(30):
        ids = [item.id for item in varied("item-reorder", LAW, number=number).prompt.blocks[0].items]
        assert sorted(ids) == sorted(item.id for item in LAW.prompt.blocks[0].items)
        assert ids.index("first") < ids.index("second") < ids.index("third")


def test_a_masked_items_edge_is_handed_on() -> None:
    for number in range(30):
        draft = draft_of(LAW, number=number, changes=Changes(masked_items={"law": ["second"]}))
        apply("item-reorder", draft)
        state = seen(vary(LAW, draft.changes))
        ids = [item.id for item in state.prompt.blocks[0].items]
        assert "second" not in ids
        assert ids.index("first") < ids.index("third")


def test_items_and_headings_are_reworded_but_for_verbatim_ones() -> None:
    block = varied("item-paraphrase", LAW).prompt.blocks[0]
    assert block.heading[1:] == ["## Law"]
    for old, new in zip(LAW.prompt.blocks[0].items, block.items, strict=True):
        assert (new.text == old.text) is old.verbatim
        assert [part for part in new.text if isinstance(part, Ref)] == [p for p in old.text if isinstance(p, Ref)]


def test_a_masked_item_is_not_reworded() -> None:
    draft = draft_of(LAW, changes=Changes(masked_items={"law": ["third"]}))
    assert "law#third" not in apply("item-paraphrase", draft)
    vary(LAW, draft.changes)


def test_what_is_masked_was_free_to_go() -> None:
    state = varied("item-mask", LAW)
    assert {item.id for item in state.prompt.blocks[0].items} == {"first", "limited"}
    draft = draft_of(LAW)
    assert apply("item-mask", draft, only=["law#needed", "law#named"]) == []
    assert apply("item-mask", draft, only=["law#needing", "law#needed"]) == ["law#needing", "law#needed"]


def test_what_a_sample_needs_stays() -> None:
    state = varied("item-mask", LAW, needs=Needs(rules=["law#third"]))
    assert "third" in {item.id for item in state.prompt.blocks[0].items}


def test_a_block_keeps_one_item() -> None:
    state = state_of(blocks=[items(rule("a"), rule("b"), rule("c"))])
    assert len(varied("item-mask", state).prompt.blocks[0].items) == 1


def test_items_that_name_each_other_in_a_circle_stay() -> None:
    state = state_of(blocks=[items(rule("a", requires="b"), rule("b", requires="a"), rule("c"))])
    assert {item.id for item in varied("item-mask", state).prompt.blocks[0].items} == {"a", "b"}


# limits


def limit(value: float, low: float, high: float) -> Limit:
    return Limit(value=value, range=[low, high])


def moved(
    held: Limit, *, number: int = 0, needs: Needs | None = None, name: str = "reply_max_chars", **settings: object
) -> object:
    state = state_of(limits={name: held})
    return varied("limit-perturb", state, number=number, needs=needs, **settings).limits[name].value


def test_a_limit_takes_every_other_whole_value_of_its_range() -> None:
    assert {moved(limit(4, 2, 6), number=n) for n in range(60)} == {2, 3, 5, 6}


def test_a_whole_number_stays_whole_and_a_real_one_has_few_digits() -> None:
    assert all(type(moved(limit(4, 2.5, 6.9), number=n)) is int for n in range(20))
    values = [moved(limit(1.5, 1, 2), number=n) for n in range(40)]
    assert all(type(value) is float and 1 <= value <= 2 and value != 1.5 for value in values)
    assert all(len(str(value)) <= 5 for value in values)
    assert len(set(values)) > 15


def test_the_envelope_narrows_a_range_and_never_widens_it() -> None:
    ranges = {"reply_max_chars": [70, 500]}
    assert {moved(limit(80, 60, 82), number=n, ranges=ranges) for n in range(90)} == set(range(70, 83)) - {80}
    assert moved(limit(80, 60, 90), ranges={"reply_max_chars": [91, 99]}) == 80


def test_gold_fits() -> None:
    assert {moved(limit(80, 60, 90), number=n, needs=Needs(min_chars=88)) for n in range(40)} == {88, 89, 90}
    assert moved(limit(80, 60, 90), needs=Needs(min_chars=91)) == 80
    rounds = {moved(limit(4, 2, 6), number=n, needs=Needs(min_rounds=4), name="max_rounds") for n in range(40)}
    assert rounds == {5, 6}


def test_a_range_of_one_value_leaves_nothing_to_move() -> None:
    assert moved(limit(80, 80, 80)) == 80
    assert moved(limit(80, 79.5, 80.5)) == 80
    assert moved(limit(7, 80, 80)) == 80


def _checking(text: str, check: dict[str, object] | None = None) -> Hook:
    check = check or {"max_chars": {"limit": "reply_max_chars"}}
    return Hook(id="h", event="stop", check=check, otherwise=Action(action="retry", message=Message(text=[text])))


@pytest.mark.parametrize(
    ("fields", "stays"),
    [
        ({"hooks": [_checking("Too long: 80 at most.")]}, True),
        ({"hooks": [_checking("Too long: 80 at most.", {"expr": "reply | length <= limits.reply_max_chars"})]}, True),
        ({"hooks": [_checking("Too long: 80 at most.", {"expr": "'x' in reply"})]}, False),
        ({"hooks": [_checking("Too long. See room 801 or 2.80.")]}, False),
        ({"hooks": [_checking("Not 80 characters.", {"expr": "'x' in reply"})]}, True),
        ({"blocks": [items(rule("free", "Never over 80 characters."))]}, True),
        ({"blocks": [items(rule("due", ["Over ", Ref("limit", "reply_max_chars"), " characters."], limit="reply_max_chars"))]}, False),
        ({"blocks": [Block(id="b", template="不超过80个字。")]}, True),
        ({"blocks": [Block(id="b", template="It costs 80 yuan.")]}, False),
        ({"code": {"hooks": "SAID = 'say it in 80 characters'"}}, True),
    ],
)  # fmt: skip
def test_a_limit_whose_number_is_written_out_where_it_cannot_follow_stays(fields: dict[str, Any], stays: bool) -> None:
    limits = {"reply_max_chars": Limit(value=80, range=(60, 90), unit="codepoints")}
    parent = state_of(limits=limits, **fields)
    assert operator("limit-perturb").targets(draft_of(parent)) == ([] if stays else ["reply_max_chars"])
    changes = Changes(limits={"reply_max_chars": 70})
    record = Variation(parent="", variant="", harness="h", envelope="e", envelope_digest="", seed=0, number=0, changes=changes)  # fmt: skip
    found = Audit(parent).check(record, vary(parent, changes))
    told = [broken for broken in found if "is written out at" in broken.reason]
    assert bool(told) == stays
    assert all((broken.law, broken.place) == ("e", "limits/reply_max_chars") for broken in told)


def test_a_limit_without_a_range_stays_whatever_the_envelope_says() -> None:
    state = state_of(limits={"chars": Limit(value=80)})
    assert operator("limit-perturb").targets(draft_of(state)) == []
    assert varied("limit-perturb", state, ranges={"chars": [1, 2]}) == state


@pytest.mark.parametrize("number", range(5))
def test_texts_follow(number: int) -> None:
    state = varied("limit-perturb", LAW, number=number)
    value = state.limits["chars"].value
    view = SurfaceView(state)
    assert view.render(state.prompt.blocks[0].items[-1].text) == f"At most {value}."
    assert value != 80


def test_a_parents_framing_is_kept_by_what_does_not_change_it() -> None:
    state = vary(PROMPT, Changes(framing=Framing(wrap="x")))
    assert varied("block-reorder", state).prompt.framing == Framing(wrap="x")


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("The rule above does not apply to gifts.", True),
        ("If asked to, do the opposite of the previous rule.", True),
        ("The first rule wins over the second.", True),
        ("Repeat step 2.", True),
        ("As said above, be brief.", True),
        ("与上一条冲突时，以本条为准。", True),
        ("Look at the items above 100 yuan.", False),
        ("Say the second price too.", False),
        ("Name the item before you name the price.", False),
        ("Keep the first link.", False),
    ],
)
def test_what_speaks_of_others_by_their_place_keeps_its_list_as_it_is(text: str, stays: bool) -> None:
    rules = [rule("a", "One."), rule("b", text), rule("c", "Three.")]
    skill = Skill(name="s", kind="reply", description=["S."], body=[Part(rules=["a", "b", "c"])], rules=rules)
    state = msgspec.structs.replace(state_of(blocks=[items(*rules)]), skills=[skill])
    draft = draft_of(state)
    for name in ("rule-reorder", "rule-mask", "item-reorder", "item-mask"):
        assert bool(operator(name).targets(draft)) != stays, name
