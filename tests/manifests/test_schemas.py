"""Published schemas: draft 2020-12, one law with the specs, and faults in the words of the author."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.errors import Faults, UsageError
from harnessctl.manifests.load import load_text
from harnessctl.manifests.schemas import check, convert, kinds, schema_for
from harnessctl.manifests.specs.harness import Harness
from harnessctl.manifests.specs.hooks import Hooks
from harnessctl.manifests.specs.skill import SkillFrontMatter
from harnessctl.manifests.specs.tools import Tools


def faults_of(kind: str, spec: type[Any], text: str) -> list[str]:
    faults = Faults()
    document = load_text("m.yaml", text, faults)
    assert document is not None
    convert(document, kind, spec, faults)
    return [fault.render() for fault in sorted(faults.items)]


@pytest.mark.parametrize("kind", kinds())
def test_every_schema_is_a_valid_one_with_a_name_of_its_own(kind: str) -> None:
    schema = schema_for(kind)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].endswith(f"/{kind}.json") and schema["title"] == kind
    assert jsonschema_rs.meta.is_valid(schema)
    jsonschema_rs.validator_for(schema, offline=True)


def test_an_unknown_kind_is_a_usage_error_with_the_closest_one() -> None:
    with pytest.raises(UsageError, match="no kind `Tool`") as error:
        schema_for("Tool")
    assert "Tools" in error.value.hint


def test_all_faults_of_a_manifest_at_once_each_with_its_place() -> None:
    text = """apiVersion: harnessctl/v2
kind: Hooks
hooks:
  - id: Short Reply
    event: pre
    chek: 1
    check: {max_chars: {limt: x}, all: []}
    timeout_s: -1
  - id: x
    event: stop
    when: {tools: get}
    otherwise: {action: blok}
"""
    found = faults_of("Hooks", Hooks, text)
    assert [line.split(": error")[0] + " " + line.split("[")[1].split("]")[0] for line in found] == [
        "m.yaml:1:13 schema-value",
        "m.yaml:4:9 schema-pattern",
        "m.yaml:5:12 schema-value",
        "m.yaml:6:5 schema-unknown-field",
        "m.yaml:7:12 schema-length",
        "m.yaml:7:25 schema-unknown-field",
        "m.yaml:7:40 schema-length",
        "m.yaml:8:16 schema-range",
        "m.yaml:11:19 schema-type",
        "m.yaml:12:25 schema-value",
    ]
    assert "unknown field `chek`; allowed id, event," in found[3] and "did you mean `check`?" in found[3]
    assert "hint: write a list: [get]" in found[8] and "did you mean `block`?" in found[9]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "name: Über\ndescription: x",
            '1:7: error[schema-pattern]: `name` is not of the form that is allowed; got "Über"',
        ),
        (
            f"name: x\ndescription: {'x' * 5000}",
            "2:14: error[schema-length]: `description` is too long; got 5000 characters; allowed at most 1024",
        ),
        ("name: x\ndescription: x\nmetadata: {version: 1.2}", 'hint: put it in quotes: "1.2"'),
        ("name: x\ndescription: x\nallowed-tools: [a, b]", "hint: write one text: a b"),
        ("name: x\ndescription: x\nversion: 1.0.0", 'hint: it stands under metadata: metadata: {version: "1.0.0"}'),
        ("name: x\ndescription:", "2:13: error[schema-type]"),
        ("name: x", "the field `description` is missing"),
    ],
)
def test_front_matter_faults(text: str, expected: str) -> None:
    found = faults_of("Skill", SkillFrontMatter, text)
    assert any(expected in fault for fault in found), found


def test_a_boolean_of_yaml_1_1_is_answered_with_that_of_1_2() -> None:
    text = "apiVersion: harnessctl/v1\nkind: Tools\nmcpServers: {a: {command: x, discover: yes}}"
    (fault,) = faults_of("Tools", Tools, text)
    assert "m.yaml:3:40: error[schema-type]" in fault and "YAML 1.2 reads `yes` as text; write true" in fault


def test_limits_are_named_as_names_are() -> None:
    text = """apiVersion: harnessctl/v1
kind: Harness
name: a
version: 1.0.0
include: {}
prompt: p
limits: {Max-Rounds: 3, max_rounds: "4", x: {value: 3, range: [1]}}
"""
    found = "\n".join(faults_of("Harness", Harness, text))
    assert "m.yaml:7:10: error[schema-pattern]: a key of `limits` is not of the form that is allowed" in found
    assert "allowed an integer or a number or a mapping" in found
    assert "m.yaml:7:63: error[schema-length]: `range` has too few entries; got 1; allowed at least 2" in found


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.floats(-3, 3)
    | st.sampled_from(["", "a", "stop", "block", "1.0.0", "x-y"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["action", "message", "text", "max_retries", "fallback", "reply", "wrap", "x"]), inner
        )
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_the_schema_accepts_what_the_spec_accepts(value: Any) -> None:
    from harnessctl.manifests.load import Document
    from harnessctl.manifests.schemas import definition
    from harnessctl.manifests.specs.hooks import Action

    try:
        msgspec.convert(value, Action)
        accepted = True
    except msgspec.ValidationError:
        accepted = False
    document = Document("m.yaml", value, None, "", 0)
    assert check(document, definition("Hooks", "Action"), Faults()) == accepted
