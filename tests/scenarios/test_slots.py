"""Slots: what a text with `{name}` becomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnessctl.simulate.slots import SlotError, Template

ROW = {"n": 5, "name": "{wok}", "price": 39.5, "none": None, "zh": "锅"}


@pytest.mark.parametrize(
    ("value", "texts", "expected"),
    [
        ("{n}", False, 5),
        ("{n}", True, "5"),
        ("{none}", False, None),
        ("link {n}: {price}", False, "link 5: 39.5"),
        ("{{{n}}} 100% of {name}", False, "{5} 100% of {wok}"),
        ({"a": ["{n}", {"b": "{zh}号"}], "c": 1, "d": None}, False, {"a": [5, {"b": "锅号"}], "c": 1, "d": None}),
        ("", False, ""),
    ],
)
def test_filled(value, texts, expected):
    assert Template(value, texts=texts).fill(ROW) == expected


@pytest.mark.parametrize(("text", "at"), [("a {", 2), ("}", 0), ("{ n}", 0), ("{1}", 0), ("{n}}", 3)])
def test_a_brace_alone_is_refused_at_its_place(text, at):
    with pytest.raises(SlotError) as caught:
        Template(text)
    assert caught.value.at == at


@given(st.text())
def test_any_text_with_its_braces_doubled_is_itself(text):
    assert Template(text.replace("{", "{{").replace("}", "}}")).fill({}) == text


def test_names_are_all_columns_and_written_those_within_a_text():
    template = Template({"a": "{n}", "b": "to {zh}"})
    assert (template.names, template.written) == ({"n", "zh"}, {"zh"})
