"""Laws of importing: what is mended compiles and says the same; what is written reads back alike in both loaders."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from harnessctl.bundle.text import render_text
from harnessctl.compile.references import text_of
from harnessctl.compile.scope import Scope
from harnessctl.errors import Faults
from harnessctl.importing import import_hooks, import_mcp, import_skills
from harnessctl.importing.mentions import mend
from harnessctl.importing.sentences import cut, first_paragraph
from harnessctl.importing.yaml_text import to_yaml
from harnessctl.manifests.load import load_text
from harnessctl.manifests.passage import Passage

NAMES = {"get_price", "item-qa", "search.v2_all"}
PIECES = [
    "get_price", "item-qa", "search.v2_all", "`get_price`", "``item-qa``", "`run get_price`", "/item-qa", "ns:item-qa",
    "`ns:get_price`", "get_price.md", "x/get_price", "[item-qa](get_price)", "https://x.org/item-qa", "word", "价格", ".",
    "(", ")", "\n\n", "\n```\n", "\n~~~\n", "`", "``", "    ", "<!--", "-->", "<b>", " ", "#", "**", "_", "'", '"', "- ",
]  # fmt: skip


def scope() -> Scope:
    tools = {name: {"tags": [], "group": "retrieval"} for name in NAMES if "_" in name}
    skills = {name: {"kind": "reply"} for name in NAMES if "-" in name}
    return Scope(
        Path(), "", tools=tools, skills=skills, servers={}, limits={}, harnesses=(), elsewhere={}
    )  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_a_mended_text_without_stuck_mentions_compiles_and_says_the_same(pieces: list[str]) -> None:
    text = "".join(pieces)
    mended = mend(text, NAMES)
    assert mended.text.replace("`", "") == text.replace("`", "")
    faults = Faults()
    compiled = text_of(Passage("x", mended.text, lambda offset: (1, offset)), scope(), faults)
    bare = [fault.render() for fault in faults.items if fault.code == "ref-bare"]
    assert bool(bare) == bool(mended.stuck), (mended, bare)
    if not bare:
        assert render_text(compiled, tools={}, skills={}, limits={}).replace("`", "") == text.replace("`", "")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_mending_twice_is_mending_once(pieces: list[str]) -> None:
    once = mend("".join(pieces), NAMES)
    again = mend(once.text, NAMES)
    assert (again.text, again.done) == (once.text, [])


TEXTS = st.one_of(
    st.sampled_from(
        ["on", "Yes", "NO", "y", "1.0", "0x1F", "012", "1_000", "12:30", "2024-01-02", "~", "null", "", " ", "- a", "a: b",
         "# c", "a #b", "multi\nline", "trail \nspace", "\nlead", "tab\there", "end\n", "{{ x }}", "=", "<<", ".5", "1e3",
         "'", '"', "\\", "👋 日本", "a" * 300, "long words " * 40, "cmd \"$X\" && y # z " * 20, "\u2028", "&a", "*a", "!t"]
    ),
    st.text(max_size=40).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text)),
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(TEXTS, st.booleans(), st.none(), st.integers(-(2**53), 2**53), st.floats(-1e6, 1e6)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=5))
def test_what_is_written_reads_back_in_both_loaders(value) -> None:
    text = to_yaml(value)
    faults = Faults()
    document = load_text("x", text, faults)
    assert document is not None
    assert (document.value, faults.errors) == (value, [])
    assert YAML(typ="safe", pure=True).load(text) == value


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(TEXTS, st.one_of(TEXTS, st.lists(TEXTS, max_size=3)), min_size=1, max_size=4))
def test_a_yaml_1_1_reader_reads_texts_as_texts(value) -> None:
    try:
        found = yaml.safe_load(to_yaml(value))
    except yaml.YAMLError:  # PyYAML takes no astral characters outside quotes and the like
        return
    assert found == value


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab .!?。\n", max_size=80), st.integers(5, 60))
def test_a_cut_text_is_a_beginning_of_it(text: str, limit: int) -> None:
    shorter = cut(text, limit)
    assert len(shorter) <= limit
    assert text.startswith(shorter)


def test_first_paragraphs() -> None:
    assert first_paragraph("# T\n\n![x](y)\n<div>\n\n| a |\n\nOne\ntwo.\n- three\n") == ("One two.", 8)
    assert first_paragraph("```\ncode\n```\n# Only a heading\n") == ("Only a heading", 4)
    assert first_paragraph("- a\n- b\n") == ("", 0)


WORDS = st.sampled_from(
    ["hooks", "Stop", "PreToolUse", "beforeSubmitPrompt", "BeforeTool", "matcher", "type", "command", "timeout", "async", "id",
     "tools", "result", "name", "inputSchema", "description", "server", "mcpServers", "url", "args", "env", "properties", "$ref",
     "required", "annotations", "$schema", "shell", "if", "a b"]
)  # fmt: skip
JSON = st.recursive(
    st.one_of(WORDS, TEXTS, st.booleans(), st.none(), st.integers(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=5)),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(WORDS, JSON, max_size=4))
def test_any_json_is_imported_or_refused(tmp_path: Path, value) -> None:
    (tmp_path / "project").mkdir(exist_ok=True)
    (tmp_path / "found.json").write_text(json.dumps(value))
    for run in (import_hooks, import_mcp):
        (entry,) = run(tmp_path / "found.json", tmp_path / "project", dry_run=True).entries
        assert entry.outcome == "imported" or (entry.outcome == "refused" and entry.reason)


LINES = st.sampled_from(
    ["---", "name: x", "name: 3", "description: a: b", "description: |", "  text", "\ttab: 1", "metadata:", "  - a", "tags: [a",
     "a: &a [*a]", "# T", "## Rules", "- rule {#a}", "- b {after=c}", "- {.rules}", "```", "text", "", "`#x`", "version: 1",
     "license: {a: 1}", "allowed-tools: 3", "{}", "...", "%YAML 1.1", "? x", "load_skill"]
)  # fmt: skip


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, max_size=14), front=st.booleans())
def test_any_skill_is_imported_or_refused(tmp_path: Path, lines: list[str], front: bool) -> None:
    (tmp_path / "project").mkdir(exist_ok=True)
    (tmp_path / "x.md").write_text("\n".join(["---", *lines] if front else lines))
    (entry,) = import_skills(tmp_path / "x.md", tmp_path / "project", dry_run=True).entries
    assert entry.outcome == "imported" or (entry.outcome == "refused" and entry.reason)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_any_bytes_are_imported_or_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "project").mkdir(exist_ok=True)
    (tmp_path / "x").write_bytes(data)
    for run in (import_skills, import_hooks, import_mcp):
        assert len(run(tmp_path / "x", tmp_path / "project", dry_run=True).entries) == 1
