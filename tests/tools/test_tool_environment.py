"""Environment: variables are filled in from what was given, named when they are missing, and hidden afterwards."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from harnessctl.runtime.tools.environment import Environment


def test_only_what_was_given_counts() -> None:
    environment = Environment({"KEY": "value-1"})
    assert environment.missing("${KEY} ${PATH}") == ["PATH"]
    assert "PATH" in os.environ
    assert environment.missing({"a": ["${X}", "$X"], "b": {"c": "${A:-1}"}, "d": 3}) == ["X"]


def test_values_and_defaults_are_filled_in() -> None:
    environment = Environment({"KEY": "value-1", "EMPTY": ""})
    assert environment.fill("${KEY}/${KEY}/${OTHER:-d e}/${EMPTY:-x}/$KEY") == "value-1/value-1/d e//$KEY"


def test_a_value_with_a_line_break_is_no_header() -> None:
    environment = Environment({"KEY": "a\nb", "GOOD": "ab"})
    assert environment.broken_header({"X": "${GOOD}", "Y": "${KEY}"}) == "Y"
    assert environment.broken_header({"X": "${GOOD}"}) is None


@given(st.text(min_size=6, max_size=12), st.text(max_size=6), st.text(max_size=6))
def test_a_value_that_was_given_out_is_hidden_wherever_it_stands(secret: str, before: str, after: str) -> None:
    environment = Environment({"KEY": secret})
    assert environment.hide(secret) == secret
    environment.fill("${KEY}")
    assert secret not in environment.hide(before + secret + after) or secret in "***"
