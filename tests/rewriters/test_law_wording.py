"""Law h: what a paraphrase may change, and what it may not, in English and Chinese."""

from __future__ import annotations

import time

import pytest

from harnessctl.augment.laws.wording import check, wording_faults
from harnessctl.bundle import Bundle
from harnessctl.bundle.text import Ref, Text
from harnessctl.bundle.variation import Changes, Variation

A, B, MAX = Ref("tool", "get_product"), Ref("tool", "quote_price"), Ref("limit", "reply_max_chars")

KEPT: list[tuple[str, Text, Text]] = [
    ("order of clauses", ["Call ", A, " before you call ", B, "."], ["Before you call ", B, ", call ", A, "."]),
    ("same bound", ["Reply in at most ", MAX, " characters."], ["Answer in no more than ", MAX, " characters."]),
    ("contraction", ["Do not push; it is not asked."], ["Don't press; it isn't asked."]),
    ("obligation", ["You must ask."], ["You have to ask."]),
    ("permission", ["You may ask."], ["You can ask."]),
    ("condition", ["Ask if a link is missing."], ["When a link is missing, ask."]),
    ("cannot", ["It cannot be read."], ["It is impossible to read."]),
    ("written number", ["Name 2 links."], ["Mention two links."]),
    ("thousands", ["It costs 1,000 yuan."], ["Its price is 1000 yuan."]),
    ("idiom", ["Small talk or nothing at all."], ["Small talk or nothing."]),
    ("times", ["Say it once."], ["Say it one time."]),
    ("order word", ["Look before anything else."], ["Look first."]),
    ("only", ["It goes to the viewer alone."], ["It goes only to the viewer."]),
    ("quotation moves", ['No "hurry" and no haste.'], ['No haste and no "hurry".']),
    ("negation moves", ["Say no price before ", A, "."], ["Before ", A, ", say no price."]),
    ("zh order", ["说价格之前，先调用", A, "。"], ["报价格以前，首先调用", A, "。"]),
    ("zh obligation", ["必须先道歉。"], ["务必先致歉。"]),
    ("zh prohibition", ["不要猜测。"], ["请勿臆测。"]),
    ("zh bound", ["最多", MAX, "个字。"], ["不超过", MAX, "字。"]),
    ("zh condition", ["如果没有链接，就问。"], ["没有链接时，就问。"]),
    ("zh words with such characters", ["特别说明：分别介绍。"], ["请说明：逐个介绍。"]),
    ("zh yes or no", ["问用户要不要发票，能不能等。"], ["问用户是否要发票、可否等候。"]),
    ("zh must by two negations", ["不得不拒绝。"], ["必须拒绝。"]),
    ("zh numbers", ["给出两个选项。"], ["给出2个选项。"]),
]

BROKEN: list[tuple[str, Text, Text, str]] = [
    ("negation dropped", ["Do not sell."], ["Sell."], "'not'"),
    ("negation added", ["Sell it."], ["Do not sell it."], "'not'"),
    ("contracted negation dropped", ["Don't sell."], ["Do sell."], "'not'"),
    ("no dropped", ["No coupon is given."], ["A coupon is given."], "'not'"),
    ("nothing dropped", ["Promise nothing."], ["Promise something."], "'not'"),
    ("never to not", ["Never ask."], ["Do not ask."], "'never'"),
    ("without dropped", ["Reply without the fact."], ["Reply with the fact."], "'without'"),
    ("except dropped", ["All but for the last."], ["All and the last."], "'except'"),
    ("only dropped", ["Only say prices."], ["Say prices."], "'only'"),
    ("only for alone dropped", ["It goes to the viewer alone."], ["It goes to the viewer."], "'only'"),
    ("number changed", ["Name 2 links."], ["Name 3 links."], "number 2"),
    ("number word changed", ["Ask one question."], ["Ask two questions."], "number 1"),
    ("number word dropped", ["Ask one question."], ["Ask a question."], "number 1"),
    ("ordinal changed", ["Take the second."], ["Take the third."], "number 2."),
    ("unit changed", ["Wait 5 minutes."], ["Wait 5 hours."], "in min"),
    ("percent", ["Give 5% off."], ["Give 5 yuan off."], "in %"),
    ("times changed", ["Say it once."], ["Say it twice."], "number 1x"),
    ("must to may", ["You must ask."], ["You may ask."], "'must'"),
    ("may to must", ["You can ask."], ["You need to ask."], "'may'"),
    ("should to must", ["You should ask."], ["You must ask."], "'should'"),
    ("obligation added", ["Ask."], ["You must ask."], "'must'"),
    ("at most to at least", ["At most 3 links."], ["At least 3 links."], "'at most'"),
    ("bound on another number", ["At most 2 of the 3."], ["At most 3 of the 2."], "'at most' of 2"),
    ("under to over", ["Items under 30 yuan."], ["Items over 30 yuan."], "'under'"),
    ("always to sometimes", ["Always reply."], ["Often reply."], "'always'"),
    ("before to after", ["Ask before you answer."], ["Ask after you answer."], "'before'"),
    ("first dropped", ["Look first."], ["Look."], "'first'"),
    ("if to unless", ["Ask if it fits."], ["Ask unless it fits."], "'unless'"),
    ("condition dropped", ["Ask if it fits."], ["Ask whether or not it fits."], "'if'"),
    ("all to any", ["Check all links."], ["Check any link."], "'all'"),
    ("reference dropped", ["Call ", A, " now."], ["Call the tool now."], "reference tool get_product"),
    ("reference doubled", ["Call ", A, "."], ["Call ", A, ", and ", A, "."], "reference tool get_product"),
    ("reference changed", ["Call ", A, "."], ["Call ", B, "."], "reference tool quote_price"),
    ("references swapped", ["Call ", A, " before ", B, "."], ["Call ", B, " before ", A, "."], "'before' governs"),
    ("negated reference swapped", ["Use ", A, ", not ", B, "."], ["Use ", B, ", not ", A, "."], "'not' governs"),
    ("limit dropped", ["At most ", MAX, " characters."], ["At most 80 characters."], "reference limit"),
    ("quotation altered", ['Not "the best".'], ['Not "the finest".'], "quoted"),
    ("code altered", ["Take `next` now."], ["Take `last` now."], "quoted"),
    ("quotation dropped", ['Say "yes" or no.'], ["Say yes or no."], "quoted"),
    ("name in words", ["Call the tool for it."], ["Call get_product for it."], "name get_product"),
    ("hyphenated name", ["Use the skill for it."], ["Use item-qa for it."], "item-qa"),
    ("markup", ["Say it plainly."], ["Say it **plainly**."], "markup"),
    ("bullet", ["Say it plainly."], ["- Say it plainly."], "lines"),
    ("new line", ["Say it plainly."], ["Say it\nplainly."], "lines"),
    ("unbalanced quote", ["Say it plainly."], ['Say it "plainly.'], "unbalanced"),
    ("empty", ["Say it plainly."], [" "], "empty"),
    ("too long", ["Say it."], ["Say it, " + "and say it so that it is heard by those who listen " * 2], "length"),
    ("too short", ["Say what the item is made of and how it is used at home."], ["Say things."], "length"),
    ("question", ["Which one is it?"], ["Say which one it is."], "questions"),
    ("language", ["Say the price."], ["说价格。"], "language"),
    ("zh negation dropped", ["不要猜测价格。"], ["要猜测价格。"], "'not'"),
    ("zh prohibition dropped", ["请勿推销商品。"], ["请推销商品。"], "'not'"),
    ("zh must to may", ["必须先道歉。"], ["可以先道歉。"], "'must'"),
    ("zh cannot to can", ["不能说价格。"], ["能说价格。"], "'not'"),
    ("zh yes or no to no", ["问用户要不要发票。"], ["问用户不要发票。"], "'not'"),
    ("zh must to must not", ["不得不拒绝。"], ["不得拒绝。"], "'not'"),
    ("zh only dropped", ["只说一次价格。"], ["说一次价格。"], "'only'"),
    ("zh number changed", ["给出两个选项。"], ["给出三个选项。"], "number 2"),
    ("zh digits changed", ["最多说80个字。"], ["最多说90个字。"], "number 80"),
    ("zh unit changed", ["等5分钟。"], ["等5小时。"], "in min"),
    ("zh bound changed", ["最多3个链接。"], ["至少3个链接。"], "'at most'"),
    ("zh before to after", ["说价格之前查询。"], ["说价格之后查询。"], "'before'"),
    ("zh operands swapped", ["在", A, "之前调用", B], ["在", B, "之前调用", A], "'before' governs"),
    ("zh condition dropped", ["如果没有链接，就问。"], ["没有链接，就问。"], "'if'"),
    ("zh always dropped", ["总是回复。"], ["常常回复。"], "'always'"),
    ("zh quotation altered", ["不要说“最好”。"], ["不要说“最佳”。"], "quoted"),
    ("zh reference dropped", ["先调用", A, "。"], ["先调用工具。"], "reference"),
    ("zh first dropped", ["先查询库存。"], ["查询一下库存。"], "'first'"),
    ("zh all to any", ["回答所有问题。"], ["回答任何问题。"], "'all'"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), [case[1:] for case in KEPT], ids=[case[0] for case in KEPT])
def test_a_paraphrase_is_accepted(before: Text, after: Text) -> None:
    assert wording_faults(before, after) == []
    assert wording_faults(after, before) == []


@pytest.mark.parametrize(("before", "after", "said"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_change_of_meaning_is_named(before: Text, after: Text, said: str) -> None:
    faults = wording_faults(before, after)
    assert any(said in fault for fault in faults), faults


def test_a_text_far_too_long_is_refused_without_being_read() -> None:
    started = time.process_time()
    assert wording_faults(["Call ", A, "."], ["x" * 10**7]) == ["length: 14 characters before, 10000000 after"]
    assert time.process_time() - started < 0.5


def test_equal_texts_keep_everything() -> None:
    text: Text = ['Never **say** `x` or "y"\n- without ', A]
    assert wording_faults(text, list(text)) == []


def test_private_characters_of_a_text_stand_for_no_reference() -> None:
    assert wording_faults(["Call ", A, " now."], ["Call \ue000tool:get_product\ue001 now."]) != []


def _variation(texts: dict[str, Text]) -> Variation:
    return Variation(
        parent="a", variant="b", harness="live-stream", envelope="e-1", envelope_digest="c", seed=1, number=0,
        changes=Changes(texts=texts),
    )  # fmt: skip


def test_each_changed_place_is_checked_against_its_parent(hosts: dict[str, Bundle]) -> None:
    state = hosts["live-stream"].state
    good: Text = ["Answer in the language of the viewer: Chinese to Chinese, English to English."]
    bad: Text = ["Answer in any language."]
    broken = check(state, _variation({"prompt/boundaries/items/language": good, "skills/item/description": bad}))
    assert [(fault.law, fault.place, fault.reason) for fault in broken] == [
        ("h", "skills/item/description", "the parent has no such text")
    ]
    broken = check(state, _variation({"prompt/boundaries/items/language": bad}))
    assert {fault.place for fault in broken} == {"prompt/boundaries/items/language"}
    assert any("'any'" in fault.reason for fault in broken)


def test_a_verbatim_rule_is_not_reworded(hosts: dict[str, Bundle]) -> None:
    state = hosts["live-stream"].state
    place = "skills/after-sales-care/rules/no-data"
    rule = next(rule for skill in state.skills for rule in skill.rules if rule.id == "no-data")
    broken = check(state, _variation({place: ["Please note: ", *rule.text]}))
    assert [(fault.place, fault.reason) for fault in broken] == [(place, "it is verbatim and was reworded")]
