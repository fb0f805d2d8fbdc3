"""SKILL.md: front matter and rules, as written and as people get them wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.errors import Faults
from harnessctl.manifests.markdown import SkillFile, read_skill

HEAD = "---\nname: item-qa\ndescription: Answers questions.\n---\n"


def read(text: str | bytes) -> tuple[SkillFile, list[str]]:
    faults = Faults()
    skill = read_skill("skills/item-qa/SKILL.md", text.encode() if isinstance(text, str) else text, faults)
    assert skill is not None
    return skill, [fault.render() for fault in faults.items]


def body(text: str) -> SkillFile:
    skill, faults = read(HEAD + text)
    assert faults == []
    return skill


def rebuilt(skill: SkillFile) -> str:
    """The body as the parts say it: texts as they are, rules with their markers, one after another."""
    rules = {rule.id: rule.passage.text for rule in skill.rules}
    out = ""
    for part in skill.parts:
        if part.passage is not None:
            out += part.passage.text
        for number, name in enumerate(part.rules, 1):
            marker = "- " if part.marker == "-" else f"{number}. "
            out += marker + rules[name].replace("\n", "\n" + " " * len(marker)) + "\n"
    return out


def test_rules_are_the_items_under_the_heading_rules() -> None:
    skill = body(
        "Be brief.\n- not a rule\n\n## Rules\n- Call `get_product` first. {#lookup .protected}\n"
        "- Reply in at most 80 characters. {#short .verbatim limit=reply_max_chars}\n"
        "- Ask. {#ask requires=lookup after=short}\n\n## After\n- not a rule either\n"
    )
    assert [rule.id for rule in skill.rules] == ["lookup", "short", "ask"]
    lookup, short, ask = skill.rules
    assert lookup.passage.text == "Call `get_product` first." and lookup.protected and not lookup.verbatim
    assert lookup.place == (9, 1) and lookup.passage.place(0) == (9, 3)
    assert short.verbatim and short.values == {"limit": "reply_max_chars"} and short.places["limit"] == (10, 59)
    assert ask.values == {"requires": "lookup", "after": "short"}


def test_a_heading_marked_rules_and_its_subheadings_hold_rules() -> None:
    skill = body("# Title\n## Pricing {.rules}\n- one\n### Deeper\n- two\n## Else\n- three\n")
    assert [rule.passage.text for rule in skill.rules] == ["one", "two"]
    assert "{.rules}" not in rebuilt(skill) and rebuilt(skill).startswith(
        "# Title\n## Pricing\n- one\n### Deeper\n- two\n"
    )


def test_a_rule_is_its_whole_item() -> None:
    skill = body(
        "## Rules\n- First line,\n  second line. {#a}\n  - nested\n    deeper\n\n  another paragraph\n- ```\n  - code {#x}\n  ```\nlazy\n"
        "- last\n"
    )
    assert [rule.passage.text for rule in skill.rules] == [
        "First line,\nsecond line.\n- nested\n  deeper\n\nanother paragraph",
        "```\n- code {#x}\n```\nlazy",
        "last",
    ]
    first = skill.rules[0].passage
    assert first.place(first.text.index("deeper")) == (9, 5)


def test_numbered_rules_keep_their_kind_of_marker() -> None:
    skill = body("## Rules\n1. one\n2. two\n   more\n\n- three\n")
    assert [(part.rules and len(part.rules), part.marker) for part in skill.parts if part.rules] == [
        (2, "1."),
        (1, "-"),
    ]
    assert skill.rules[1].passage.text == "two\nmore"


def test_fences_are_left_alone() -> None:
    text = "Text\n```\n## Rules\n- no rule {#no}\n```\n~~~\n## Rules\n~~~\n## Rules\n- yes\n"
    skill = body(text)
    assert [rule.passage.text for rule in skill.rules] == ["yes"]
    assert rebuilt(skill) == text


def test_braces_in_text_are_text() -> None:
    skill = body("## Rules\n- Say {name}\n- Write `{#x}`\n- A set {a, b}\n")
    assert [rule.passage.text for rule in skill.rules] == ["Say {name}", "Write `{#x}`", "A set {a, b}"]


def test_rules_without_an_id_are_named_by_their_text() -> None:
    one = body("## Rules\n- Be kind.\n- Be brief.\n- Be kind.\n")
    kind, brief, again = (rule.id for rule in one.rules)
    assert kind.startswith("r-") and again == f"{kind}-2"
    other = body(f"## Rules\n- New. {{#{kind}}}\n- Be brief.\n- Be\n  kind.\n")
    assert [rule.id for rule in other.rules] == [kind, brief, f"{kind}-2"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- x {#a #b}", "SKILL.md:6:9: error[rule-attribute]: a rule has two ids; got #b"),
        ("- x {#A}", "SKILL.md:6:6: error[rule-id]"),
        ("- x {.protectd}", "hint: did you mean `protected`?"),
        ("- x {#a protected}", "hint: write .protected"),
        ("- x {#a limits=b}", "hint: did you mean `limit`?"),
        ("- x {id=a}", "hint: write the id as #a"),
        ("- x {#a after=}", "SKILL.md:6:9: error[rule-attribute]: `after=` has no value"),
        ("- x {#a after=b after=c}", "error[rule-attribute]: `after=` is given twice"),
        ("- x {#a}\n- y {#a}", "SKILL.md:7:6: error[rule-duplicate]: two rules are called #a; got first at line 6"),
        ("- x\n  - nested {#a}", "SKILL.md:7:12: error[rule-attribute]: attributes stand at the wrong place of a rule"),
        ("- {#a}", "SKILL.md:6:1: error[rule-empty]: a rule has no text"),
        ("## Other\n- x {#a}", "SKILL.md:7:5: error[rule-attribute]: attributes on a list item that is not a rule"),
        ("## Other {.rule}", "SKILL.md:6:10: error[rule-attribute]: an unknown attribute of a heading; got {.rule}"),
    ],
)
def test_wrong_attributes(line: str, expected: str) -> None:
    _, faults = read(HEAD + "## Rules\n" + line + "\n")
    assert any(expected in text for text in faults), faults


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title\n", "SKILL.md:1:1: error[skill-front-matter]: the file has no front matter; got # Title"),
        ("", "SKILL.md:1:1: error[skill-front-matter]: the file has no front matter"),
        ("\n\n" + HEAD, "SKILL.md:1:1: error[skill-front-matter]: something stands before the front matter"),
        ("---\nname: x\n", "SKILL.md:1:1: error[skill-front-matter]: the front matter is never closed"),
        ("\ufeff" + HEAD, "SKILL.md:1:1: error[text-bom]"),
        (HEAD.replace("\n", "\r\n"), "SKILL.md:1: error[text-crlf]"),
        ("---\nname: x\n\tlicense: y\n---\n", "SKILL.md:3:1: error[yaml-tab]"),
        ("---\nname: x\nname: y\n---\n", "SKILL.md:3:1: error[yaml-duplicate-key]"),
        ("---\nname: x\ndescription: Use: this\n---\n", 'hint: put the value in quotes: description: "Use: this"'),
    ],
)
def test_wrong_front_matter(text: str, expected: str) -> None:
    _, faults = read(text)
    assert any(expected in fault.replace(":1:0:", ":1:") for fault in faults), faults


def test_a_broken_front_matter_does_not_hide_a_broken_body() -> None:
    _, faults = read("---\nname: 'x\n---\n## Rules\n- a {#A}\n")
    assert ["yaml-quote" in faults[0], "rule-id" in faults[1]] == [True, True]


LINES = st.lists(
    st.sampled_from(
        [
            "",
            "text",
            "- item",
            "  - nested",
            "  more",
            "1. number",
            "## Rules",
            "## Other",
            "### Sub",
            "```",
            "- x {#a}",
            "* star",
        ]
    ),
    max_size=14,
)


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_no_line_of_a_body_is_lost_or_moved(lines: list[str]) -> None:
    faults = Faults()
    source = "## Rules\n" + "\n".join(lines)
    skill = read_skill("s", (HEAD + source).encode(), faults)
    assert skill is not None

    def words(text: str) -> list[str]:
        kept = (line.replace("{#a}", "").strip().lstrip("-*0123456789. ") for line in text.split("\n"))
        return [line for line in kept if line]

    assert words(rebuilt(skill)) == words(source)
    assert len({rule.id for rule in skill.rules}) == len(skill.rules)


def test_real_skills_are_read_or_named(shared_data: Path) -> None:
    for path in sorted((shared_data / "skills").rglob("*SKILL.md")):
        faults = Faults()
        skill = read_skill(path.name, path.read_bytes(), faults)
        assert skill is not None
        if not faults.items:
            assert skill.front is not None and isinstance(skill.front.value, dict)
        assert all(fault.line for fault in faults.items)
