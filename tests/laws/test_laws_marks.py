"""What in a text could be read as a name."""

from __future__ import annotations

import pytest

from harnessctl.augment.laws.foreign import code_spans, told_words
from harnessctl.augment.laws.marks import marks_of
from harnessctl.augment.laws.schemas import difference
from harnessctl.bundle.state import Action, Hook, Message
from harnessctl.bundle.text import Ref

GET = Ref("tool", "get_item")


@pytest.mark.parametrize(
    ("text", "spans", "words"),
    [
        (["plain words"], set(), set()),
        (["get_item"], set(), {"get_item"}),
        (["see `get`, ``x y`` and `` `z` ``"], {"get", "x y", "`z`"}, set()),
        (["`get_item(3)`"], {"get_item(3)"}, {"get_item"}),
        (["shop.get_item"], set(), {"shop.get_item", "shop", "get_item"}),
        (["调用get_item吧"], set(), {"get_item"}),
        (["```\n`get`\n```\n`x`"], {"x"}, set()),
        (["```\n`get`\nnever closed"], {"get"}, set()),
        (["lone ` tick, `x`"], {"tick, "[:-1]}, set()),
    ],
)
def test_spans_and_words(text: list, spans: set[str], words: set[str]):
    marks = marks_of(text)
    assert (set(marks.spans), set(marks.words)) == (spans, words)
    assert marks.whole


def test_references_are_told_from_words():
    marks = marks_of(["Call ", GET, " in ", Ref("limit", "max_rounds"), ", see ", Ref("rule", "x"), " and `y`."])
    assert marks.names == {"tool:get_item", "limit:max_rounds"}
    assert (marks.rules, marks.spans, marks.words, marks.whole) == ({"x"}, {"y"}, frozenset(), True)


@pytest.mark.parametrize("text", [["see `x ", GET], [GET, GET], ["```\n", GET, "\n```"]])
def test_a_reference_that_is_swallowed_is_seen(text: list):
    assert not marks_of(text).whole


def test_code_says_what_is_no_docstring():
    source = '"""Names `a`."""\nX = "say `b`"\n\ndef f(n):\n    "`c`"\n    return f"`skill:d` {n} `e`"\n'
    assert code_spans(source) == {(None, "b"), ("skill", "d"), (None, "e")}


def test_a_check_without_a_message_is_told_as_it_is():
    check = {"all": [{"expr": "calls('get_item')"}, {"tool_called": {"tools": ["other_tool"]}}]}
    hook = Hook(id="h", event="stop", check=check, otherwise=Action(action="block"))
    assert told_words(hook) == {"get_item"}
    spoken = Hook(id="h", event="stop", check=check, otherwise=Action(action="block", message=Message(text=["No."])))
    assert told_words(spoken) == frozenset()


WHOLE = {
    "type": "object",
    "properties": {
        "description": {"type": "string"},
        "title": {"type": "integer", "enum": [1, 2]},
        "deep": {"type": "array", "items": {"type": "object", "properties": {"title": {"type": "string"}}}},
    },
    "required": ["title"],
    "anyOf": [{"required": ["deep"]}, {"properties": {"title": {"const": 1}}}],
}


def seen(**changes: object) -> dict:
    """WHOLE as a model sees it, with `title` shown as `t`."""
    out = {
        "type": "object",
        "description": "All of it.",
        "properties": {
            "t": {"type": "integer", "enum": [1, 2], "title": "T", "examples": [3]},
            "description": {"type": "string", "description": "Yes."},
            "deep": {
                "type": "array",
                "items": {"type": "object", "properties": {"title": {"type": "string", "description": "In."}}},
            },
        },
        "required": ["t"],
        "anyOf": [{"required": ["deep"]}, {"properties": {"t": {"const": 1}}}],
    }
    return out | changes


def test_titles_and_descriptions_do_not_count_but_properties_of_these_names_do():
    assert difference(WHOLE, seen(), {"t": "title"}) is None
    assert difference(WHOLE, seen(), {}) == "/properties/t"
    without = seen()
    del without["properties"]["description"]
    assert difference(WHOLE, without, {"t": "title"}) == "/properties"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"type": "array"}, "/type"),
        ({"required": []}, "/required"),
        ({"required": ["title"]}, None),
        ({"minProperties": 1}, "/minProperties"),
        ({"anyOf": [{"required": ["deep"]}]}, "/anyOf"),
        (
            {"anyOf": [{"required": ["deep"]}, {"properties": {"t": {"const": True}}}]},
            "/anyOf/1/properties/title/const",
        ),
    ],
)
def test_a_difference_has_its_place(changes: dict, place: str | None):
    assert difference(WHOLE, seen(**changes), {"t": "title"}) == place
