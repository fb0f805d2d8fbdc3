"""YAML 1.2 core in both loaders: the C parser with our resolution, and ruamel.yaml for round trips."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from harnessctl.errors import Faults
from harnessctl.manifests.load import load_text
from harnessctl.manifests.roundtrip import round_trip


def load(text: str) -> Any:
    faults = Faults()
    document = load_text("x.yaml", text, faults)
    assert document is not None and not faults.items, [f.render() for f in faults.items]
    return document.value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"),
        ("Off", "Off"),
        ("yes", "yes"),
        ("n", "n"),
        ("0o14", 12),
        ("014", 14),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2001-01-01", "2001-01-01"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("~", None),
        ("", None),
        ("TRUE", True),
        ("tRue", "tRue"),
        ("=", "="),
        ("'80'", "80"),
        ("!!str 80", "80"),
        ("!!float 1", 1.0),
    ],
)
def test_scalars_of_the_core_schema(written: str, value: Any) -> None:
    found = load(f"a: {written}")["a"]
    assert found == value and type(found) is type(value)


def test_keys_that_yaml_1_1_would_read_as_booleans() -> None:
    assert load("on: {y: no}") == {"on": {"y": "no"}}


CHARACTERS = st.text(st.sampled_from("0123456789abcdefxoXOE_+-.:eE~nulNULtrueTRUEfalsyon=<, "), min_size=0, max_size=9)


@settings(max_examples=300, deadline=None)
@given(CHARACTERS)
def test_plain_scalars_are_read_alike_by_both_loaders(text: str) -> None:
    source = f"a: {text}\n"
    faults = Faults()
    ours = load_text("x.yaml", source, faults)
    if ours is None or not isinstance(ours.value, dict) or faults.items:
        return  # a syntax fault, or a value that JSON cannot hold
    theirs = round_trip().load(source)["a"]
    mine = ours.value["a"]
    assert theirs == mine
    assert isinstance(theirs, bool) == isinstance(mine, bool) and isinstance(theirs, str) == isinstance(mine, str)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(
        st.characters(
            codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029\ufeff\ufffe\uffff"
        )
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcd-_ é中", max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_a_document_written_by_ruamel_is_read_back(value: Any) -> None:
    from io import StringIO

    out = StringIO()
    writer = round_trip()
    writer.dump({"v": value}, out)
    assert _same(load(out.getvalue())["v"], value)
    assert _same(round_trip().load(out.getvalue())["v"], value)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-15)
    return bool(left == right)


@pytest.mark.parametrize("written", ["on", "yes", "off", "12:30", "0o14", "012", "1e3", "null", "x: y"[0]])
def test_stock_ruamel_agrees_where_it_follows_the_core_schema(written: str) -> None:
    assert YAML(typ="safe").load(f"a: {written}")["a"] == load(f"a: {written}")["a"]
