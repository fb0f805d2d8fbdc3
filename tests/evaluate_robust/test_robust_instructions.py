"""Instructions on a reply: each rule on texts that keep to it and texts that do not, and the oracle that brings one about."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harnessctl.augment.stream import Stream
from harnessctl.evaluate.building.instructions import chosen, templates
from harnessctl.records.scenario import Gold
from harnessctl.records.task import (
    Avoids,
    Begins,
    Ends,
    Instruction,
    Length,
    Lines,
    Lowercase,
    Marks,
    Mentions,
    Sentences,
    Wrapped,
)
from harnessctl.score.instructions import fault, sentences
from harnessctl.score.phrases import Said
from harnessctl.simulate.obeying import keeps, obeyed

KEPT: list[tuple[Instruction, str]] = [
    (Begins(id="FI", text="Hi there,"), "hi  there, link 3 is 89 yuan."),
    (Begins(id="FI", text="回答一下："), "回答一下:3号是89元。"),
    (Ends(id="FI", text="See you."), "It is 89 yuan. See you.\n"),
    (Mentions(id="FI", text="follow the room"), "Follow the room, all of you."),
    (Mentions(id="FI", text="点点关注"), "喜欢的话点点关注哦。"),
    (Avoids(id="FI", texts=["link"]), "Linked or not, number 3 is blinking."),
    (Avoids(id="FI", texts=["元"]), "一共89块。"),
    (Length(id="FI", least=5, most=5), "12345"),
    (Length(id="FI", most=4), "四个字吧"),
    (Sentences(id="FI", count=2), "No. 3 costs 89.50 yuan. That is all"),
    (Sentences(id="FI", count=2), "3号是89元。慢慢看！"),
    (Sentences(id="FI", count=1), "Really?!"),
    (Lines(id="FI", count=2), "One line.\nAnother."),
    (Marks(id="FI", mark="!", count=1), "真好！"),
    (Marks(id="FI", mark="，", count=0), "Link 3 is 89 yuan"),
    (Wrapped(id="FI", left='"', right='"'), "“Link 3 is 89 yuan.”"),
    (Wrapped(id="FI", left="「", right="」"), "「3号是89元。」"),
    (Lowercase(id="FI"), "link 3 is 89 yuan. 好"),
]
BROKEN: list[tuple[Instruction, str, str]] = [
    (Begins(id="FI", text="Hi there,"), "Well, hi there, link 3.", "does not begin"),
    (Ends(id="FI", text="See you."), "See you. Bye.", "does not end"),
    (Mentions(id="FI", text="neighbour"), "Dear neighbours, it is 89.", "does not say"),
    (Avoids(id="FI", texts=["link", "yuan"]), "Link 3 is 89 yuan.", "says: link, yuan"),
    (Avoids(id="FI", texts=["号"]), "3号是89元。", "says: 号"),
    (Length(id="FI", least=6), "12345", "fewer than 6"),
    (Length(id="FI", most=4), "12345", "more than 4"),
    (Sentences(id="FI", count=2), "It is 89 yuan.", "1 sentences"),
    (Sentences(id="FI", count=1), "好。真好。", "2 sentences"),
    (Lines(id="FI", count=2), "One.\n\nTwo.", "lines"),
    (Lines(id="FI", count=2), "One.", "1 lines"),
    (Marks(id="FI", mark="!", count=1), "Good!！", "2 times"),
    (Marks(id="FI", mark=",", count=0), "好的，89元。", "1 times"),
    (Wrapped(id="FI", left='"', right='"'), '"Link 3" is "89".', "does not stand"),
    (Wrapped(id="FI", left='"', right='"'), '""', "does not stand"),
    (Lowercase(id="FI"), "link 3 of Mira.", "capital"),
]


@pytest.mark.parametrize(("rule", "text"), KEPT, ids=lambda value: str(value)[:40])
def test_a_text_that_keeps_to_a_rule(rule: Instruction, text: str) -> None:
    assert fault(text, rule) == ""


@pytest.mark.parametrize(("rule", "text", "said"), BROKEN, ids=lambda value: str(value)[:40])
def test_a_text_that_breaks_a_rule_says_how(rule: Instruction, text: str, said: str) -> None:
    assert said in fault(text, rule)


@pytest.mark.parametrize("rule", [rule for rule, _ in KEPT], ids=lambda rule: type(rule).__name__)
def test_nothing_said_keeps_to_no_rule_but_those_that_forbid(rule: Instruction) -> None:
    forbids = (Avoids, Lowercase)
    is_bound = isinstance(rule, Length) and not rule.least
    is_none = isinstance(rule, Marks) and rule.count == 0
    assert (fault("  ", rule) == "") is (isinstance(rule, forbids) or is_bound or is_none)


def test_sentences_are_told_apart_in_both_languages() -> None:
    assert sentences("Yes! It is 1,299.00 yuan... no. 3 has 2.5 m.") == [
        "Yes",
        "It is 1,299.00 yuan",
        "no. 3 has 2.5 m",
    ]
    assert sentences("“有的。”3号还有9件，快来！") == ["有的", "3号还有9件，快来"]


def test_every_template_has_a_rubric_and_both_languages_all_categories() -> None:
    for language in ("en", "zh"):
        found = templates(language)
        assert len({template.id for template in found}) == len(found) >= 20
        assert {template.category for template in found} == {
            "wording", "persona", "mention", "forbidden", "length", "format", "language",
        }  # fmt: skip
        for template in found:
            ((kind, values),) = template.check.items()
            numbers = {key: 20 for key, value in values.items() if value in ("shortest", "longer")}
            rubric = msgspec.convert({"check": kind, "id": "FI", **values, **numbers}, Instruction)
            assert fault("", rubric) or isinstance(rubric, (Avoids, Length, Lowercase, Marks))


REPLIES = {
    "en": ["Link 3 is 89 yuan.", "It is 89 yuan, link 3.", "Yes, link 12 is in stock, 55 left."],
    "zh": ["3号是89元。", "有的，12号还有55件。", "今天3号链接89元，放心拍。"],
}


@given(
    language=st.sampled_from(["en", "zh"]),
    reply=st.integers(0, 2),
    count=st.integers(1, 3),
    seed=st.integers(0, 10_000),
)
def test_what_is_chosen_together_can_be_kept_together(language: str, reply: int, count: int, seed: int) -> None:
    gold = Gold(replies=REPLIES[language][reply:])
    found = chosen(gold, language, count, 240, Stream(seed))
    assume(found is not None)  # what was taken first may leave no room
    assert found is not None
    rules = [one.rubric for one in found]
    assert len({one.template.category for one in found}) == count
    assert [rule.id for rule in rules] == (["FI"] if count == 1 else [f"FI-{n}" for n in range(1, count + 1)])
    said = [obeyed(text, rules, language) for text in gold.replies]
    assert any(keeps(text, rules) for text in said)
    for rule in rules:
        assert 2 * sum(not fault(text, rule) for text in gold.replies) <= len(gold.replies)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_reply_keeps_its_facts_in_any_form(language: str) -> None:
    fact = {"en": "89 yuan", "zh": "89元"}[language]
    for template in templates(language):
        ((kind, values),) = template.check.items()
        numbers = {key: 40 for key, value in values.items() if value == "longer"} | {
            key: 200 for key, value in values.items() if value == "shortest"
        }
        rule = msgspec.convert({"check": kind, "id": "FI", **values, **numbers}, Instruction)
        said = obeyed(REPLIES[language][0], [rule], language)
        assert keeps(said, [rule]), (template.id, said)
        assert Said(said).says(fact), (template.id, said)


def test_without_instructions_a_text_stays_as_it_is() -> None:
    assert obeyed("Link 3 is 89 yuan.", [], "en") == "Link 3 is 89 yuan."
