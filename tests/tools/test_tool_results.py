"""Results: plain JSON, within the schema, cut with a mark, and never somebody else's object."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnessctl.errors import ToolError
from harnessctl.runtime.tools.outcome import Failure, ResultForm


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("{'a': (1, 2.5, None, True, '价')}", {"a": [1, 2.5, None, True, "价"]}),
        ("''", ""),
        ("[]", []),
        ("False", False),
        ("__import__('datetime').date(2026, 1, 2)", "2026-01-02"),
    ],
)
def test_json_values_come_through(bench: Any, expression: str, result: Any) -> None:
    assert bench.python(f"def tool(): return {expression}").result == result


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("object()", "the result is of type object"),
        ("{'rows': [1, {2}]}", "/rows/1 is of type set"),
        ("{'a': {1: 2}}", "/a has a key of type int; keys are strings"),
        ("{'price': float('nan')}", "/price is nan"),
        ("[None, float('-inf')]", "/1 is -inf"),
        ("b'abc'", "the result is of type bytes"),
        ("(n for n in [1])", "the result is of type generator"),
        ("2 ** 70", "64"),
        ("'\\ud800'", "UTF-8"),
    ],
)
def test_what_is_not_json_is_named_with_its_place(bench: Any, expression: str, said: str) -> None:
    outcome = bench.python(f"def tool(): return {expression}", retries=2)
    assert (outcome.status, outcome.result, outcome.attempts) == ("error", None, 1)
    assert outcome.error.startswith("the tool's result is not JSON: ")
    assert said in outcome.error


def test_a_result_within_itself_is_an_error(bench: Any) -> None:
    assert "nested too deeply" in bench.python("def tool():\n    a = []\n    a.append(a)\n    return a").error


def test_nothing_is_an_error_unless_the_schema_allows_null(bench: Any) -> None:
    nothing = "def tool(): pass"
    assert bench.python(nothing).error == "the tool gave no result"
    assert bench.python(nothing, result={"type": "string"}).error == "the tool gave no result"
    assert bench.python(nothing, result={"type": ["string", "null"]}).status == "ok"


def test_a_result_outside_its_schema_names_the_place(bench: Any) -> None:
    schema = {"type": "object", "properties": {"rows": {"items": {"type": "integer"}}}}
    outcome = bench.python("def tool(): return {'rows': [1, 'x']}", result=schema)
    assert (outcome.status, outcome.result) == ("error", None)
    assert outcome.error == 'the tool\'s result does not fit its schema: /rows/1: "x" is not of type "integer"'


@pytest.mark.parametrize("expression", ["'x' * 10_000_000", "{'text': ['x' * 5_000_000] * 2}"])
def test_ten_megabytes_are_cut_with_a_mark(bench: Any, expression: str) -> None:
    outcome = bench.python(f"def tool(): return {expression}", limits={"tool_result_max_chars": 500})
    assert outcome.status == "ok"
    assert len(outcome.result) == 500
    assert "[cut to 500 of 10000" in outcome.result


def test_the_limit_counts_characters_not_bytes(bench: Any) -> None:
    source = "def tool(): return '价' * 100"
    assert bench.python(source, limits={"tool_result_max_chars": 100}).result == "价" * 100
    assert "[cut to 99 of 100 characters]" in bench.python(source, limits={"tool_result_max_chars": 99}).result


def test_the_default_limit_holds_where_the_harness_names_none(bench: Any) -> None:
    assert len(bench.python("def tool(): return 'x' * 20_000").result) == 16_000


def test_a_result_is_a_copy(bench: Any) -> None:
    ctx = bench.ctx()
    outcome = bench.python("def tool(ctx): return ctx.session.setdefault('basket', ['a'])", ctx=ctx)
    ctx.session["basket"].append("b")
    assert outcome.result == ["a"]


def test_a_result_schema_that_is_none_is_refused_at_once(bench: Any) -> None:
    with pytest.raises(ToolError, match=r"^tool `tool`: result: not a JSON Schema: "):
        bench.make(bench.tool(result={"type": 5}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON)
def test_a_result_is_what_was_returned_or_a_failure_that_never_hides_a_nan(bench: Any, value: Any) -> None:
    form = ResultForm(bench.tool(result={}), 10_000)
    try:
        plain = form.plain(value)
    except Failure as error:
        assert "nan" in error.message or "inf" in error.message
        with pytest.raises(ValueError, match="not JSON compliant"):
            json.dumps(value, allow_nan=False)
    else:
        assert plain == value
        assert orjson.dumps(plain) == orjson.dumps(value)
