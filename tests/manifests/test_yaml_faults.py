"""Every way in which a YAML file can be wrong: code, place, cause and hint as a user sees them."""

from __future__ import annotations

import pytest

from harnessctl.errors import Faults
from harnessctl.manifests.load import load_text, load_yaml


def faults_of(data: str | bytes) -> list[str]:
    faults = Faults()
    load_yaml("m.yaml", data.encode() if isinstance(data, str) else data, faults)
    return [fault.render() for fault in faults.items]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "a: 1\nb: {c: 1, c: 2}",
            "m.yaml:2:11: error[yaml-duplicate-key]: the key `c` is given twice; got first at line 2",
        ),
        ("a: 1\na: 2", "m.yaml:2:1: error[yaml-duplicate-key]: the key `a` is given twice; got first at line 1"),
        ("\ufeffa: 1", "m.yaml:1:1: error[text-bom]"),
        ("a: 1\r\nb: 2\r\n", "m.yaml:1: error[text-crlf]"),
        ("a:\n\tb: 1", "m.yaml:2:1: error[yaml-tab]: a tab is used for indentation"),
        ("a:\n  - b\n\t- c", "m.yaml:3:1: error[yaml-tab]"),
        (b"a: caf\xe9\n", "m.yaml:1:7: error[text-encoding]: the file is not UTF-8 text; got byte 0xe9"),
        ("a: 1".encode("utf-16"), "m.yaml:1:1: error[text-encoding]"),
        ("a: 1\n---\nb: 2", "m.yaml:2:1: error[yaml-documents]"),
        ("x: &x {a: 1}\ny:\n  <<: *x", "m.yaml:3:3: error[yaml-merge-key]"),
        (
            "a: !!python/object:os.system x",
            "m.yaml:1:4: error[yaml-tag]: an unknown tag; got !!python/object:os.system",
        ),
        ("a: !mine {b: 1}", "m.yaml:1:4: error[yaml-tag]: an unknown tag; got !mine"),
        ("a: !!int x", "m.yaml:1:4: error[yaml-tag]: the value is not of type int; got x"),
        ("a: \x00b", "m.yaml:1:4: error[text-control]: a control character; got U+0000"),
        ("a: b\u2028c", "m.yaml:1:5: error[text-control]: a control character; got U+2028"),
        ("[" * 2000, "m.yaml:1:1001: error[yaml-depth]"),
        ("[" * 70 + "]" * 70, "m.yaml:1:65: error[yaml-depth]"),
        ("\n".join(" " * n + "a:" for n in range(1500)), "error[yaml-depth]"),
        ("a: 'x\nb: 1", "m.yaml:1:4: error[yaml-quote]: a quote is opened and never closed; got a: 'x"),
        ("a: [1, 2\nb: 1", "m.yaml:1:4: error[yaml-bracket]"),
        ("a: {b: 1", "m.yaml:1:4: error[yaml-bracket]"),
        ("a: &a [*a]", "m.yaml:1:4: error[yaml-alias-cycle]"),
        ("a: *b", "m.yaml:1:4: error[yaml-alias]"),
        ("%YAML 1.1\n---\na: on", "m.yaml:1:1: error[yaml-directive]"),
        ("1: x", 'hint: put it in quotes: "1":'),
        ("? [a]\n: b", "m.yaml:1:3: error[yaml-key]: a key is a list or a mapping"),
        ("a: .inf", "m.yaml:1:4: error[yaml-number]"),
        ("a: 9007199254740993", "m.yaml:1:4: error[yaml-number]"),
        ("a: 1e999", "m.yaml:1:4: error[yaml-number]"),
        ('a: "\\q"', "m.yaml:1:5: error[yaml-escape]"),
        ("a: @b", 'hint: put the value in quotes: a: "@b"'),
        ("a: `b`", "m.yaml:1:4: error[yaml-syntax]: a value may not begin with ```"),
        (
            "a: b\nc",
            "m.yaml:2:1: error[yaml-syntax]: a line without a colon stands where `key: value` is expected; got c",
        ),
        ("a: 'b' c", "m.yaml:1:8: error[yaml-syntax]: the line does not fit the lines above it"),
        ("- a\nb: c", "m.yaml:2:1: error[yaml-syntax]"),
    ],
)
def test_each_fault_names_place_and_cause(source: str | bytes, expected: str) -> None:
    assert any(expected in text for text in faults_of(source)), faults_of(source)


def test_an_unquoted_colon_is_answered_with_the_line_to_write() -> None:
    (text,) = faults_of('description: Use this: when "it" matters\n')
    assert text == (
        "m.yaml:1:22: error[yaml-colon]: an unquoted value contains a colon; "
        'got Use this: when "it" matters; allowed a quoted text\n'
        '    hint: put the value in quotes: description: "Use this: when \\"it\\" matters"'
    )


def test_an_alias_bomb_is_stopped_early() -> None:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefg", "bcdefgh", strict=True):
        rows.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]")
    texts = faults_of("\n".join(rows))
    assert (
        len(texts) == 1
        and "error[yaml-alias-bomb]: too many values, those counted that aliases repeat; got more than 200000"
        in texts[0]
    )


def test_a_few_aliases_are_fine() -> None:
    faults = Faults()
    document = load_text("m.yaml", "a: &x {n: [1]}\nb: *x\nc: *x", faults)
    assert document is not None and document.value == {"a": {"n": [1]}, "b": {"n": [1]}, "c": {"n": [1]}}
    assert not faults.items


def test_faults_of_the_text_do_not_hide_those_of_its_values() -> None:
    texts = faults_of("\ufeffa: 1\r\na: 2\r\nb: .nan\r\n")
    assert [text.split("error[")[1].split("]")[0] for text in texts] == [
        "text-bom",
        "text-crlf",
        "yaml-duplicate-key",
        "yaml-number",
    ]


def test_places_lead_to_values_keys_and_into_texts() -> None:
    faults = Faults()
    document = load_text(
        "m.yaml",
        "a:\n  - b: one\n    c: |\n      first\n      second `x`\n  - >-\n    folded and\n    folded\n",
        faults,
    )
    assert document is not None
    assert document.place("a", 0, "b") == (2, 8)
    assert document.place("a", 0, "b", key=True) == (2, 5)
    assert document.place("a", 0, "missing") == (2, 5)
    assert document.place("a", 7) == (2, 3)
    literal = document.passage("a", 0, "c")
    assert literal.text == "first\nsecond `x`\n"
    assert literal.place(literal.text.index("`")) == (5, 14)
    assert literal.line_place(2) == (5, 7)
    folded = document.passage("a", 1)
    assert folded.place(folded.text.rindex("folded")) == (8, 5)


def test_places_count_code_points_and_start_where_the_text_does() -> None:
    faults = Faults()
    document = load_text("m.yaml", '文: {键: "值 `x`"}', faults, first_line=5)
    assert document is not None
    assert document.place("文", "键") == (5, 8)
    passage = document.passage("文", "键")
    assert passage.place(passage.text.index("`")) == (5, 11)


def test_direction_marks_are_a_warning() -> None:
    assert faults_of("a: x\u202ey") == [
        "m.yaml:1:5: warning[text-bidi]: a character that turns the direction of writing can hide text from a reader; got U+202E"
    ]


def test_a_huge_file_is_refused_unread() -> None:
    (text,) = faults_of(b"a: " + b"x" * 4_000_001)
    assert "m.yaml: error[text-too-large]" in text
