from hypothesis import given
from hypothesis import strategies as st

from harnessctl.bundle.text import Ref, format_number, render_text


def test_only_references_change():
    text = [
        "Call ",
        Ref("tool", "get"),
        " for get, then ",
        Ref("skill", "qa"),
        "; at most ",
        Ref("limit", "n"),
        " words",
    ]
    shown = render_text(text, tools={"get": "fetch"}, skills={"qa": "answers"}, limits={"n": 80})
    assert shown == "Call `fetch` for get, then `answers`; at most 80 words"


def test_a_name_without_a_surface_is_its_own():
    assert render_text([Ref("tool", "x"), Ref("rule", "r")], tools={}, skills={}, limits={}) == "`x``#r`"


@given(st.lists(st.text()))
def test_plain_strings_are_never_searched(parts):
    assert render_text(list(parts), tools={"a": "b"}, skills={"a": "b"}, limits={}) == "".join(parts)


def test_numbers_read_as_people_write_them():
    assert [format_number(x) for x in (80, 80.0, 2.5, 0)] == ["80", "80", "2.5", "0"]
