"""Answers of judges: what can be read, and the cause where it cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_project import answer

from harnessctl.evaluate.judging.answer import Answer, NoAnswer, read_answer

POINTERS = {"accuracy": "/accuracy", "effectiveness": "/effectiveness"}


def test_an_answer_is_read():
    assert read_answer(answer("i1", 0, 0.5, " no such price "), "i1", POINTERS) == Answer(0.0, 0.5, "no such price")
    assert read_answer('{"id": "i1", "accuracy": 1.0, "effectiveness": 1, "reason": "x"}', "i1", POINTERS) == Answer(
        1.0, 1.0, "x"
    )


def test_scores_are_where_the_harness_says():
    text = '{"id": "i1", "grades": {"a": 1, "e": 0.5}, "reason": "x"}'
    assert read_answer(text, "i1", {"accuracy": "/grades/a", "effectiveness": "/grades/e"}) == Answer(1.0, 0.5, "x")


@pytest.mark.parametrize(
    ("text", "cause", "words"),
    [
        ("", "nothing", "it is empty"),
        ("  \n", "nothing", "it is empty"),
        ("The reply is fine, I give it a 1.", "prose", "it is no JSON object"),
        ("1", "prose", "it is no JSON object"),
        ("[1, 1]", "prose", "it is no JSON object"),
        ('{"id": "i1", "accuracy": 1, "effec', "broken-json", "it is no JSON object"),
        ('Here you are: {"id": "i1"}', "broken-json", "it is no JSON object"),
        ('{"id": "i1", "accuracy": NaN, "effectiveness": 1, "reason": "x"}', "broken-json", "it is no JSON object"),
        ('{"accuracy": 1, "effectiveness": 1, "reason": "x"}', "missing", "it has no id; this item is 'i1'"),
        ('{"id": "i1", "effectiveness": 1, "reason": "x"}', "missing", "it has no accuracy"),
        ('{"id": "i1", "accuracy": 1, "effectiveness": null, "reason": "x"}', "missing", "it has no effectiveness"),
        (answer("i2"), "other-item", "its id is 'i2', and this item is 'i1'"),
        (answer("i1", 7), "out-of-range", "its accuracy is 7; allowed 0, 1"),
        (answer("i1", 0.5), "out-of-range", "its accuracy is 0.5; allowed 0, 1"),
        (answer("i1", True), "out-of-range", "its accuracy is True; allowed 0, 1"),
        (answer("i1", "1"), "out-of-range", "its accuracy is '1'; allowed 0, 1"),
        (answer("i1", 1, 0.7), "out-of-range", "its effectiveness is 0.7; allowed 0, 0.5, 1"),
        (answer("i1", 1, -1), "out-of-range", "its effectiveness is -1"),
        (answer("i1", reason=" "), "no-reason", "it gives no reason"),
    ],
)
def test_what_cannot_be_used_has_its_cause(text, cause, words):
    found = read_answer(text, "i1", POINTERS)
    assert isinstance(found, NoAnswer)
    assert found.cause == cause
    assert found.words.startswith(words)


@given(st.text(max_size=60))
def test_any_text_is_an_answer_or_a_cause(text):
    found = read_answer(text, "i1", POINTERS)
    assert isinstance(found, NoAnswer) and found.words


@given(st.sampled_from([0, 1]), st.sampled_from([0, 0.5, 1]), st.text(min_size=1, max_size=20).filter(str.strip))
def test_what_is_written_is_read(accuracy, effectiveness, reason):
    assert read_answer(answer("x/1#2", accuracy, effectiveness, reason), "x/1#2", POINTERS) == Answer(
        accuracy, effectiveness, reason.strip()
    )
