"""English number words in digits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnessctl.score.number_words import in_digits


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("twelve months", "12 months"),
        ("forty-nine yuan", "49 yuan"),
        ("one hundred and forty-nine yuan", "149 yuan"),
        ("two thousand three hundred and five", "2305"),
        ("six to nine days", "6 to 9 days"),
        ("one to two days", "1 to 2 days"),
        ("link one", "link 1"),
        ("one day", "1 day"),
        ("that one", "that one"),
        ("one of them", "one of them"),
        ("someone often", "someone often"),
        ("two three", "two three"),
        ("a hundred", "a hundred"),
        ("twenty-eleven", "twenty-eleven"),
    ],
)
def test_words(text: str, digits: str) -> None:
    assert in_digits(text) == digits


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=30))
def test_a_text_without_number_words_stays(text: str) -> None:
    assert in_digits(in_digits(text)) == in_digits(text)
