"""Phrases, numbers and languages as replies say them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnessctl.score.language import is_in
from harnessctl.score.phrases import Said, holds, plain


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Link 3 is 89 yuan.", "89 yuan"),
        ("Link 3 is 89.00 Yuan!", "89 yuan"),
        ("３号链接８９元", "89元"),
        ("八十九元一件", "89"),
        ("八十九元一件", "89元"),
        ("only 1,299 yuan tonight", "1299 yuan"),
        ("yuan 89, that is", "89 yuan"),
        ("It\u2019s in  stock", "it's in stock"),
        ("it has 20% off", "20%"),
        ("这件八折", "8折"),
        ("welcome, hi!", "hi"),
        ("欢迎来到直播间", "欢迎"),
        ("39.90元", "39.9元"),
    ],
)
def test_said(text: str, phrase: str) -> None:
    assert Said(text).says(phrase)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Link 3 is 189 yuan.", "89 yuan"),
        ("Link 3 is 89.9 yuan.", "89 yuan"),
        ("it is 0.89 yuan", "89 yuan"),
        ("this and that", "hi"),
        ("Link 3 is 89 dollars", "89 yuan"),
        ("in stocking", "in stock"),
        ("nothing at all", "89"),
        ("anything", ""),
        ("89 yuan", "yuan 90"),
    ],
)
def test_not_said(text: str, phrase: str) -> None:
    assert not Said(text).says(phrase)


@given(st.text(max_size=40))
def test_a_text_says_itself(text: str) -> None:
    assert not plain(text) or Said(text).says(text)


@given(st.text(max_size=40))
def test_plain_is_settled(text: str) -> None:
    assert plain(plain(text)) == plain(text)


@given(st.text(alphabet="ab1. ", max_size=12), st.text(alphabet="ab1. ", max_size=4))
def test_what_is_held_is_there(text: str, phrase: str) -> None:
    if holds(text, phrase):
        assert phrase in text


@pytest.mark.parametrize(
    ("text", "language", "right"),
    [
        ("Link 3 is 89 yuan.", "en", True),
        ("3号链接89元。", "en", False),
        ("3号链接89元。", "zh", True),
        ("3号链接89元。", "zh-Hans", True),
        ("Link 3 is 89 yuan.", "zh", False),
        ("89", "en", True),
        ("", "zh", True),
        ("这款 Aurora 2 台灯 89 元", "zh", True),
        ("Die Lampe kostet 89 Euro", "de", True),
        ("これは89円です", "ja", True),
        ("이 제품은 89원입니다", "ko", True),
        ("이 제품은 89원입니다", "en", False),
        ("Please tap the link. 详情请点开链接查看。", "en", True),
        ("Please tap the link. 详情请点开链接查看。", "zh", True),
    ],
)
def test_language(text: str, language: str, right: bool) -> None:
    assert is_in(text, language) is right
