"""Import of skills: what people have, and what becomes of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from import_project import compiles, contents

from harnessctl.errors import StorageError, UsageError
from harnessctl.importing import import_skills
from harnessctl.importing.report import Entry

GOOD = "---\nname: refunds\ndescription: Handles refunds.\n---\n\n# Refunds\n\nAsk for the order.\n"


def only(folders, text: str | bytes, name: str = "refunds/SKILL.md", *, compile_it: bool = True) -> tuple[Entry, Path]:
    """The entry of the only skill, and the project's root; what was written must compile."""
    theirs, ours = folders({name: text})
    (entry,) = import_skills(theirs, ours).entries
    if compile_it:
        assert compiles(ours) == []
    return entry, ours


def written(root: Path, name: str = "refunds") -> str:
    return (root / f"skills/{name}/SKILL.md").read_bytes().decode()


def notes(entry: Entry) -> list[str]:
    return [note.render() for note in entry.notes]


def test_a_plain_skill_keeps_its_body_byte_for_byte(folders) -> None:
    entry, root = only(folders, GOOD)
    assert (entry.outcome, entry.files, entry.notes) == ("imported", ["skills/refunds/SKILL.md"], [])
    assert written(root) == (
        '---\nname: refunds\ndescription: Handles refunds.\nmetadata:\n  version: "1.0.0"\n  kind: strategy\n---\n'
        "\n# Refunds\n\nAsk for the order.\n"
    )


def test_an_unquoted_colon_is_repaired_and_its_line_named(folders) -> None:
    entry, root = only(folders, GOOD.replace("Handles refunds.", "Use when: a refund # is due"))
    assert notes(entry) == [
        "refunds/SKILL.md:3: changed: `description` was read as plain text: an unquoted value contains a colon "
        "(Use when: a refund # is due)"
    ]
    assert "description: 'Use when: a refund # is due'\n" in written(root)


def test_a_colon_in_the_continuation_of_a_description(folders) -> None:
    text = GOOD.replace("Handles refunds.", "Handles refunds.\n\n  Keywords: money,\n  back\nlicense: MIT")
    entry, root = only(folders, text)
    assert "refunds/SKILL.md:5: changed: `description` was read as plain text" in notes(entry)[0]
    assert "description: |-\n  Handles refunds.\n  Keywords: money, back\nlicense: MIT\n" in written(root)


def test_a_colon_in_a_nested_value(folders) -> None:
    text = GOOD.replace("refunds.\n---", "refunds.\nmetadata:\n  source: see: the wiki\n  version: 2.1.0\n---")
    entry, root = only(folders, text)
    assert "refunds/SKILL.md:5: changed: a value under `metadata` was put in quotes" in notes(entry)[0]
    assert "  version: \"2.1.0\"\n  kind: strategy\n  source: 'see: the wiki'\n" in written(root)


def test_quotes_that_are_never_closed_are_text(folders) -> None:
    entry, root = only(folders, GOOD.replace("Handles refunds.", '"Handles" refunds'))
    assert "was read as plain text" in notes(entry)[0]
    assert "description: '\"Handles\" refunds'\n" in written(root)


def test_bom_crlf_and_control_characters(folders) -> None:
    text = "\ufeff" + GOOD.replace("\n", "\r\n").replace("order.", "order\x07.")
    entry, root = only(folders, text)
    assert notes(entry) == [
        "refunds/SKILL.md:1: changed: the byte-order mark was taken off",
        "refunds/SKILL.md: changed: 8 Windows line ends were made LF",
        "refunds/SKILL.md:8: changed: 1 control characters were taken out, the first U+0007",
    ]
    assert written(root).endswith("---\n\n# Refunds\n\nAsk for the order.\n")


def test_a_character_that_hides_text_is_pointed_out(folders) -> None:
    entry, _ = only(folders, GOOD.replace("order.", "\u202eorder."))
    assert "refunds/SKILL.md:8: warning: U+202E turns the direction of writing" in notes(entry)[0]


def test_tabs_in_the_front_matter(folders) -> None:
    entry, root = only(folders, GOOD.replace("refunds.\n---", "refunds.\nmetadata:\n\tteam: money\n---"))
    assert notes(entry) == ["refunds/SKILL.md:5: changed: tabs that indent `metadata` were read as two spaces each"]
    assert "  team: money\n" in written(root)


def test_no_front_matter_takes_name_and_description_from_place_and_body(folders) -> None:
    entry, root = only(
        folders, "# Refunds\n\n> A quote.\n\nHandles refunds\nof orders.\n\n- a list\n", "Money Back/SKILL.md"
    )
    assert notes(entry) == [
        "Money Back/SKILL.md:1: warning: it has no front matter; name and description are taken from its place and its body",
        "Money Back/SKILL.md: changed: it has no name; it is called `money-back` after its folder or file",
        "Money Back/SKILL.md:5: changed: it has no description; this line of the body serves as one",
    ]
    assert written(root, "money-back").startswith("---\nname: money-back\ndescription: Handles refunds of orders.\n")


def test_a_flattened_file_name_gives_the_name(folders) -> None:
    entry, _ = only(folders, "Handles refunds.\n", "owner__repo__skills__money_back__SKILL.md")
    assert entry.name == "money-back"


def test_a_name_unlike_its_folder_is_kept(folders) -> None:
    entry, _ = only(folders, GOOD, "template/SKILL.md")
    assert entry.name == "refunds"
    assert "the name is `refunds` and its folder `template`; the name is kept" in notes(entry)[0]


@pytest.mark.parametrize(
    ("name", "slugged"),
    [
        ("SEO Optimizer", "seo-optimizer"),
        ("implement_plan", "implement-plan"),
        ("Café & Crème", "cafe-creme"),
        ("a" * 80, "a" * 64),
        ("退款", "refunds"),
        ("3.0", "3-0"),
    ],
)
def test_names_become_slugs(folders, name: str, slugged: str) -> None:
    entry, root = only(folders, GOOD.replace("name: refunds", f"name: {name}"))
    assert entry.name == slugged
    assert "refunds/SKILL.md:2: changed: the name" in notes(entry)[0]
    assert (root / f"skills/{slugged}/SKILL.md").is_file()


def test_a_chinese_name_in_a_chinese_folder(folders) -> None:
    entry, _ = only(folders, GOOD.replace("name: refunds", "name: 退款"), "退款/SKILL.md")
    assert entry.name.startswith("skill-")
    assert len(entry.name) == len("skill-") + 6


def test_a_long_description_is_cut_at_a_sentence(folders) -> None:
    sentence = "Handles a refund of an order that came late. "
    entry, root = only(folders, GOOD.replace("Handles refunds.", (sentence * 120).strip()))
    assert "the description was cut from 5399 to 989 characters" in notes(entry)[0]
    assert "name: refunds" in written(root)


def test_chinese_sentences_are_cut_too(folders) -> None:
    entry, _ = only(folders, GOOD.replace("Handles refunds.", "处理退款。" * 300))
    assert "from 1500 to 1020 characters" in notes(entry)[0]


def test_unknown_fields_go_under_metadata_as_text(folders) -> None:
    extra = "origin: ECC\nuser-invocable: false\ntags: [a, b]\nversion: 3.0\nempty:\nmetadata:\n  kind: odd\n  deep: {x: 1}\n"
    entry, root = only(folders, GOOD.replace("refunds.\n---", f"refunds.\n{extra}---"))
    assert written(root).partition("metadata:\n")[2].partition("---")[0] == (
        '  version: "3.0.0"\n  kind: strategy\n  deep: \'{"x": 1}\'\n  origin: ECC\n  user-invocable: "false"\n  tags: a, b\n'
        "  source-kind: odd\n"
    )
    assert [n for n in notes(entry) if "version" in n] == [
        "refunds/SKILL.md:7: changed: the field `version` is not in the specification; it was moved under metadata as text",
        "refunds/SKILL.md:7: changed: the version '3.0' was made '3.0.0'",
    ]
    assert "refunds/SKILL.md:8: not carried over: the field `empty` is empty" in notes(entry)


def test_a_version_that_is_none(folders) -> None:
    entry, root = only(
        folders, GOOD.replace("refunds.\n---", "refunds.\nmetadata: {version: latest, kind: reply}\n---")
    )
    assert '  version: "1.0.0"\n  kind: reply\n  source-version: latest\n' in written(root)
    assert "is not a semantic one" in notes(entry)[0]


def test_values_that_yaml_1_1_would_misread_are_quoted(folders) -> None:
    entry, root = only(
        folders, GOOD.replace("refunds.\n---", "refunds.\nmetadata: {on: yes, at: '12:30', n: '1.0'}\n---")
    )
    assert '  "on": "yes"\n  at: "12:30"\n' in written(root)
    assert '"1.0"' in written(root)
    assert entry.notes == []


def test_allowed_tools_that_the_project_has(folders) -> None:
    entry, root = only(
        folders, GOOD.replace("refunds.\n---", "refunds.\nallowed-tools: Read, get_price Bash(git:*)\n---")
    )
    assert "allowed-tools: get_price\n" in written(root)
    assert "  source-allowed-tools: Read Bash(git:*)\n" in written(root)
    assert "not carried over: allowed-tools: the project has no tool called Read, Bash(git:*)" in notes(entry)[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GOOD.replace("name: refunds", "name: a\nname: b\nx: y: z"), "the key `name` is given twice, at lines 2 and 3"),
        (GOOD.replace("name: refunds", "name: a\nname: b"), "the key `name` is given twice, at lines 2 and 3"),
        ("---\nname: refunds\ndescription: x\n\nBody.\n", "the front matter that opens at line 1 is never closed by a second line ---"),
        ("---\n- a\n- b\n---\nBody.\n", "the front matter is a list, not fields"),
        ("---\njust words\nmore: [\n---\nBody.\n", "the front matter cannot be read"),
        ("---\nname: refunds\ndescription: Handles.\n---\n\n \n", "it has no body: loading it would tell the model nothing"),
        ("---\nname: refunds\n---\n```\ncode\n```\n", "it has no description, and no paragraph or heading to take one from"),
        (b"---\nname: refunds\ndescription: caf\xe9\n---\nBody.\n", "line 3 is not UTF-8 text: byte 0xe9"),
        ("---\nname: refunds\nmetadata: {a: &a [x, x], b: *a, c: [*a\n---\nBody.\n", "line 3 of the front matter cannot be read"),
        (b"x" * 4_000_001, "it is too large: 4000001 bytes; allowed 4000000"),
        ("", "it has no body: loading it would tell the model nothing"),
    ],
    ids=range(11),
)  # fmt: skip
def test_what_is_refused_and_why(folders, text, reason: str) -> None:
    theirs, ours = folders({"refunds/SKILL.md": text})
    before = contents(ours)
    (entry,) = import_skills(theirs, ours).entries
    assert entry.outcome == "refused"
    assert entry.reason.startswith(reason)
    assert contents(ours) == before


def test_an_alias_bomb_is_refused(folders) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    theirs, ours = folders({"refunds/SKILL.md": "---\nname: refunds\n" + "\n".join(lines) + "\n---\nBody.\n"})
    (entry,) = import_skills(theirs, ours).refused
    assert "refused" in entry.outcome


def test_mentions_are_put_into_code_spans(folders) -> None:
    body = "Use get_price, then greet-viewers. See /greet-viewers, shop:greet-viewers, `ns:get_price`, `load_skill`.\n"
    entry, root = only(folders, GOOD.replace("Ask for the order.\n", body))
    assert written(root).endswith(
        "Use `get_price`, then `greet-viewers`. See /`greet-viewers`, shop:`greet-viewers`, ns:`get_price`, `load_skill`.\n"
    )
    assert len(entry.notes) == 5


@pytest.mark.parametrize(
    "mention",
    ["docs/get_price.md", "a/get_price/b", "[x](get_price)", "<get_price>", "https://x.org/get_price", "<!-- get_price -->",
     "`run get_price now`", "get_price()", "my.get_price", "    get_price\n"],
)  # fmt: skip
def test_a_mention_where_marks_would_change_the_text_is_refused(folders, mention: str) -> None:
    entry, _ = only(folders, f"{GOOD}\n{mention}\n")
    assert entry.outcome == "refused"
    assert "mentions the known name `get_price`" in entry.reason


def test_a_mention_in_code_is_refused_with_its_line(folders) -> None:
    entry, _ = only(folders, GOOD + "\n```\ncall get_price now\n```\n")
    assert entry.reason == (
        "line 11 mentions the known name `get_price` in a code block, where it cannot be put into a code span and renaming "
        "would miss it; change the line in the source and import it again"
    )


def test_a_skill_whose_own_name_stands_in_an_address_is_called_otherwise(folders) -> None:
    text = (
        GOOD.replace("name: refunds", "name: shop-refunds")
        + "See https://example.org/shop-refunds/x. Use shop-refunds.\n"
    )
    entry, root = only(folders, text, "shop-refunds/SKILL.md")
    assert entry.name == "shop-refunds-skill"
    assert "it is called `shop-refunds-skill`: `shop-refunds` stands in a link, tag or comment" in notes(entry)[0]
    assert "Use `shop-refunds-skill`.\n" in written(root, "shop-refunds-skill")
    assert "https://example.org/shop-refunds/x" in written(root, "shop-refunds-skill")


def test_of_two_skills_that_cannot_stand_together_the_mentioned_one_is_kept(folders) -> None:
    def skill(name: str, body: str) -> str:
        return f"---\nname: {name}\ndescription: Does it.\n---\n{body}\n"

    theirs, ours = folders(
        {
            "a/SKILL.md": skill("plan-a", "```\ninvoke plan-b\n```"),
            "b/SKILL.md": skill("plan-b", "Use plan-c."),
            "c/SKILL.md": skill("plan-c", "```\nplan-d\n```"),
            "d/SKILL.md": skill("plan-d", "```\nplan-c\n```"),
        }
    )
    report = import_skills(theirs, ours)
    assert [e.name for e in report.imported] == ["plan-b", "plan-d"]
    assert [e.name for e in report.refused] == ["plan-a", "plan-c"]
    assert compiles(ours) == []
    assert import_skills(theirs, ours).render().endswith("2 imported, 2 refused, 0 passed over")


def test_what_the_compiler_would_take_for_attributes_or_references(folders) -> None:
    body = (
        "Colours: `#fff`, `skill:nothing`.\n\n- an item {.class}\n- another {#anchor}\n\n## Rules\n- Be short. {#short}\n"
        "- See `#short`. {limit=width}\n- Odd {.loud}\n"
    )
    entry, root = only(folders, GOOD + body)
    text = written(root)
    assert "Colours: #`fff`, skill:`nothing`.\n\n- an item `{.class}`\n- another `{#anchor}`\n" in text
    assert "- Be short. {#short}\n- See `#short`. `{limit=width}`\n- Odd `{.loud}`\n" in text
    assert sum("would be read as attributes" in n for n in notes(entry)) == 4


def test_side_files_come_along_within_bounds(folders, tmp_path: Path) -> None:
    theirs, ours = folders(
        {
            "refunds/SKILL.md": GOOD,
            "refunds/scripts/run.py": "print(1)\n",
            "refunds/assets/logo.png": b"\x89PNG\x00\xff",
            "refunds/.DS_Store": "x",
            "refunds/examples.yaml": "not: ours\n",
            "refunds/references/big.txt": b"x" * 1_000_001,
            "other.txt": "x",
        }
    )
    (theirs / "refunds/link.txt").symlink_to(tmp_path / "ours/manifests/harness.yaml")
    (theirs / "refunds/away").symlink_to(tmp_path / "ours")
    report = import_skills(theirs, ours)
    (entry,) = report.imported
    assert sorted(entry.files) == [
        "skills/refunds/SKILL.md", "skills/refunds/assets/logo.png", "skills/refunds/scripts/run.py",
    ]  # fmt: skip
    assert (ours / "skills/refunds/assets/logo.png").read_bytes() == b"\x89PNG\x00\xff"
    assert [n.message for n in entry.notes if n.kind == "not carried over"] == [
        ".DS_Store: a hidden file",
        "examples.yaml: the project reads a file of this name as the skill's examples",
        "link.txt: a symbolic link, which is not followed",
        "references/big.txt: 1000001 bytes; allowed 1000000 a file, 16000000 together",
    ]
    assert [(e.source, e.reason) for e in report.passed_over] == [("other.txt", "not a SKILL.md, and beside none")]
    assert compiles(ours) == []


def test_a_skill_file_that_is_a_link_is_refused(folders, tmp_path: Path) -> None:
    theirs, ours = folders({})
    (theirs / "refunds").mkdir()
    (tmp_path / "secret.md").write_text(GOOD)
    (theirs / "refunds/SKILL.md").symlink_to(tmp_path / "secret.md")
    (entry,) = import_skills(theirs, ours).entries
    assert entry.reason == "it is a symbolic link, which is not followed"


def test_one_file(folders) -> None:
    theirs, ours = folders({"notes/My Refunds.md": "Handles refunds.\n", "notes/b.md": "x"})
    (entry,) = import_skills(theirs / "notes/My Refunds.md", ours).entries
    assert (entry.source, entry.name) == ("My Refunds.md", "my-refunds")
    assert "1 files and folders beside it" in notes(entry)[-1]


def test_twins_are_reported(folders) -> None:
    theirs, ours = folders({"a/SKILL.md": GOOD, "b/skill.md": GOOD})
    report = import_skills(theirs, ours)
    assert [e.source for e in report.imported] == ["a/SKILL.md"]
    assert report.refused[0].reason == "another skill of this import is called `refunds`: a/SKILL.md"


def test_nothing_is_overwritten_unless_forced(folders) -> None:
    theirs, ours = folders({"refunds/SKILL.md": GOOD})
    assert import_skills(theirs, ours).entries[0].outcome == "imported"
    assert import_skills(theirs, ours).entries[0].outcome == "unchanged"
    mine = ours / "skills/refunds/SKILL.md"
    mine.write_text(GOOD.replace("Ask", "Do not ask"))
    (ours / "skills/refunds/examples.yaml").write_text("mine\n")
    before = contents(ours)
    (entry,) = import_skills(theirs, ours).entries
    assert entry.reason == "skills/refunds/SKILL.md exists with other content; --force replaces it"
    assert contents(ours) == before
    (entry,) = import_skills(theirs, ours, force=True).entries
    assert notes(entry) == [
        "refunds/SKILL.md: changed: skills/refunds/SKILL.md existed with other content and is replaced"
    ]
    assert "Ask for the order" in mine.read_text()
    assert (ours / "skills/refunds/examples.yaml").read_text() == "mine\n"
    assert sorted(path.name for path in (ours / "skills").iterdir()) == ["greet-viewers", "refunds"]


def test_a_dry_run_writes_nothing(folders) -> None:
    theirs, ours = folders({"refunds/SKILL.md": GOOD})
    before = contents(ours)
    report = import_skills(theirs, ours, dry_run=True)
    assert report.render() == (
        "would import refunds/SKILL.md as skills/refunds/SKILL.md\n1 would be imported, 0 refused, 0 passed over"
    )
    assert contents(ours) == before


def test_a_skill_is_written_whole_or_not_at_all(folders, monkeypatch) -> None:
    theirs, ours = folders({"refunds/SKILL.md": GOOD, "refunds/scripts/a.py": "x\n"})
    before = contents(ours)
    real = os.replace

    def full(source, target) -> None:
        if str(target).endswith("SKILL.md"):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StorageError, match="No space left on device"):
        import_skills(theirs, ours)
    assert contents(ours) == before
    assert [path.name for path in (ours / "skills").iterdir()] == ["greet-viewers"]


def test_nothing_is_written_outside_the_project(folders, tmp_path: Path) -> None:
    theirs, ours = folders({"refunds/SKILL.md": GOOD})
    (tmp_path / "elsewhere").mkdir()
    (ours / "skills/refunds").symlink_to(tmp_path / "elsewhere")
    (entry,) = import_skills(theirs, ours).entries
    assert entry.reason == "skills/refunds/SKILL.md leads out of the project through a symbolic link"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_older_texts_that_mention_a_new_name_are_pointed_out(folders) -> None:
    theirs, ours = folders({"item-qa/SKILL.md": GOOD.replace("name: refunds", "name: item-qa")})
    (ours / "skills/greet-viewers/SKILL.md").write_text(
        "---\nname: greet-viewers\ndescription: Greets.\n---\nThen item-qa.\n"
    )
    (entry,) = import_skills(theirs, ours).entries
    assert notes(entry) == [
        "item-qa/SKILL.md: warning: skills/greet-viewers/SKILL.md:5 mentions `item-qa` bare, which does not compile any "
        "more: put it into a code span"
    ]


def test_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to import at"):
        import_skills(tmp_path / "nowhere", tmp_path)
    with pytest.raises(UsageError, match="no project folder at"):
        import_skills(tmp_path, tmp_path / "nowhere")


def test_the_report_as_text(folders) -> None:
    theirs, ours = folders(
        {"a/SKILL.md": GOOD.replace("Handles", "Now: Handles"), "b/SKILL.md": "---\n", "LICENSE": "MIT"}
    )
    assert (
        import_skills(theirs, ours).render()
        == """\
imported a/SKILL.md as skills/refunds/SKILL.md
    a/SKILL.md:3: changed: `description` was read as plain text: an unquoted value contains a colon (Now: Handles refunds.)
    a/SKILL.md:2: warning: the name is `refunds` and its folder `a`; the name is kept
refused b/SKILL.md: the front matter that opens at line 1 is never closed by a second line ---
passed over LICENSE: not a SKILL.md, and beside none
1 imported, 1 refused, 1 passed over"""
    )
