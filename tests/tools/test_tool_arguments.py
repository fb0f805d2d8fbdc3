"""Arguments: a message names where, got and allowed, in the names that the model was shown."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnessctl.errors import ToolError

PARAMETERS = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "maxLength": 4},
        "colour": {"enum": ["red", "blue"]},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}},
        "size": {"anyOf": [{"type": "integer"}, {"enum": ["S", "L"]}]},
        "kind": {"const": "x"},
    },
    "required": ["sku"],
    "additionalProperties": False,
}
RENAMES = {"tool": {"sku": "item_code", "lines": "rows"}}


def explain(bench: Any, args: dict[str, Any], parameters: dict[str, Any] = PARAMETERS) -> str | None:
    toolset = bench.make(bench.tool(parameters=parameters, run={"builtin": "search_faq"}), renames=RENAMES)
    return toolset.check_arguments("tool", args)


def test_arguments_that_fit_say_nothing(bench: Any) -> None:
    assert explain(bench, {"sku": "a", "colour": "red", "lines": [{"n": 1}], "size": "S"}) is None


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "`item_code` is missing."),
        ({"sku": 7}, "`item_code`: got 7; allowed: string."),
        ({"sku": "a", "colour": "green"}, '`colour`: got "green"; allowed: "red", "blue".'),
        ({"sku": "a", "kind": "y"}, '`kind`: got "y"; allowed: "x".'),
        ({"sku": "a", "lines": [{"n": 0}]}, "`rows/0/n`: 0 is less than the minimum of 1."),
        ({"sku": "abcde"}, '`item_code`: "abcde" is longer than 4 characters.'),
        ({"sku": "a", "size": "M"}, '`size`: got "M"; one of these must be mended: '),
        ({"sku": "a", "x": 1}, "`x` not known; allowed: `item_code`, `colour`, `rows`, `size`, `kind`."),
    ],
)
def test_what_is_wrong_is_named(bench: Any, args: dict[str, Any], said: str) -> None:
    message = explain(bench, args) or ""
    assert message.startswith("The arguments do not fit. ")
    assert said in message


def test_every_fault_is_named_at_once_up_to_five(bench: Any) -> None:
    message = explain(bench, {"colour": "x", "kind": "y", "size": "M", "lines": 3, "other": 1}) or ""
    assert message.count("got") >= 3
    assert message.endswith("And 1 more.")


@pytest.mark.parametrize(
    "extra",
    [
        {"minProperties": 2},
        {"anyOf": [{"required": ["lines"]}]},
        {"dependentRequired": {"sku": ["lines"]}},
        {"not": {}},
    ],
)
def test_faults_of_the_whole_never_show_a_hidden_name(bench: Any, extra: dict[str, Any]) -> None:
    message = explain(bench, {"sku": "a"}, {**PARAMETERS, **extra}) or ""
    assert message.startswith("The arguments do not fit. ")
    assert "sku" not in message
    assert "lines" not in message


def test_a_long_value_is_quoted_in_part(bench: Any) -> None:
    assert len(explain(bench, {"sku": ["x" * 100_000]}) or "") < 400


def test_no_parameters_take_any_object_and_nothing_else_is_an_object(bench: Any) -> None:
    assert explain(bench, {"a": 1}, {}) is None
    assert explain(bench, [], {}) == "The arguments do not fit. the arguments: got []; allowed: object."


def test_an_unknown_tool_is_said(bench: Any) -> None:
    assert bench.make().check_arguments("nope", {}) == "there is no such tool"


@pytest.mark.parametrize("schema", [{"type": "strin"}, {"$ref": "http://example.invalid/schema"}, {"properties": 3}])
def test_parameters_that_are_no_schema_are_refused_at_once(bench: Any, schema: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match=r"^tool `tool`: parameters: not a JSON Schema: "):
        bench.make(bench.tool(parameters=schema))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "red", "S", "abcde"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["n", "m"]), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(args=st.dictionaries(st.sampled_from(["sku", "colour", "lines", "size", "kind", "x"]), VALUES))
def test_a_message_is_given_exactly_when_the_arguments_do_not_fit(bench: Any, args: dict[str, Any]) -> None:
    fits = jsonschema.Draft202012Validator(PARAMETERS).is_valid(args)
    assert (explain(bench, args) is None) == fits
