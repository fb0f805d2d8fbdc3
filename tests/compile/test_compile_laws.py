"""Laws of the compiler: references in any text, schemas of any draft, tables that the runtime shares, SARIF, codes."""

from __future__ import annotations

import ast
import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.bundle import Ref, render_text
from harnessctl.compile import validate_project
from harnessctl.compile.json_schemas import rewrite
from harnessctl.compile.order import cycle_in
from harnessctl.compile.references import text_of
from harnessctl.compile.sarif import to_sarif
from harnessctl.compile.scope import Scope
from harnessctl.errors import Fault, Faults
from harnessctl.manifests.codes import CODES
from harnessctl.manifests.load import Document
from harnessctl.manifests.passage import Passage

TOOL: dict[str, Any] = {"tags": [], "group": "g"}
SCOPE = Scope(
    Path(),
    "h",
    tools={"get_product": TOOL, "refuse": TOOL, "get.it": TOOL},
    skills={"item-qa": {"kind": "reply"}},
    servers={},
    limits={"reply_max": 80},
    harnesses=[],
    elsewhere={"far_tool": "tool of x"},
)
PIECES = st.lists(
    st.sampled_from(
        ["get_product", "refuse", "item-qa", "far_tool", "`get_product`", "`item-qa`", "``refuse``", "`tool:refuse`", "`#a`", "`x`",
         "`", "``", "```", "~~~", " ", "\n", ".", "80", "价", "get_product_info", "`get_product(1)`", "`get.it`", "-", "_"]
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(PIECES)
def test_rendering_with_canonical_names_gives_the_text_back(pieces: list[str]) -> None:
    source = "".join(pieces)
    faults = Faults()
    text = text_of(Passage("p", source, lambda offset: (1, offset + 1)), SCOPE, faults, rules={"a"})
    assert all(isinstance(one, Ref) or isinstance(two, Ref) for one, two in itertools.pairwise(text))
    back = render_text(text, tools={}, skills={}, limits={})
    assert _spans_alike(back) == _spans_alike(source)


def _spans_alike(text: str) -> str:
    return re.sub(r"(tool|skill):|[`\s]", "", text)


@settings(max_examples=300, deadline=None)
@given(PIECES)
def test_after_renaming_no_old_name_is_left_unless_a_fault_said_so(pieces: list[str]) -> None:
    faults = Faults()
    source = "".join(pieces)
    text = text_of(Passage("p", source, lambda offset: (1, offset + 1)), SCOPE, faults, rules={"a"})
    renamed = render_text(
        text, tools={"get_product": "ZZ", "refuse": "YY", "get.it": "WW"}, skills={"item-qa": "XX"}, limits={}
    )
    words = re.findall(r"[A-Za-z0-9_]+(?:[-.]+[A-Za-z0-9_]+)*", renamed)
    if "ref-bare" not in [fault.code for fault in faults.items]:
        assert "get_product" not in words and "item-qa" not in words
    for fault in faults.items:
        assert source[fault.col - 1 :].startswith((fault.got, "`")), fault


def test_a_limit_takes_the_place_of_the_only_number() -> None:
    def refs(source: str) -> tuple[list[Any], list[str]]:
        faults = Faults()
        text = text_of(Passage("p", source, lambda offset: (1, offset + 1)), SCOPE, faults, limit="reply_max")
        return text, [fault.code for fault in faults.items]

    assert refs("At most 80 characters.") == (["At most ", Ref("limit", "reply_max"), " characters."], [])
    assert refs("不超过80字") == (["不超过", Ref("limit", "reply_max"), "字"], [])
    assert refs("1,000 in all") == ([Ref("limit", "reply_max"), " in all"], [])
    assert refs("2.5 s") == ([Ref("limit", "reply_max"), " s"], [])
    assert refs("80") == ([Ref("limit", "reply_max")], [])
    assert refs("`get_product` within 80") == ([Ref("tool", "get_product"), " within ", Ref("limit", "reply_max")], [])
    for text in ("at most eighty", "80 or 90", "80-90", "sha256", ""):
        assert refs(text)[1] == ["limit-digits"], text


OLD = [
    ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}, {"exclusiveMinimum": 3}),
    ({"minimum": 3, "exclusiveMinimum": False}, {"minimum": 3}),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"x": {"type": "string"}}, "$ref": "#/definitions/x"},
        {"$ref": "#/definitions/x"},
    ),
    ({"definitions": {"x": {}}, "properties": {"a": {"$ref": "#/definitions/x"}}}, {"$defs": {"x": {}}, "properties": {"a": {"$ref": "#/$defs/x"}}}),
    ({"items": [{"type": "string"}], "additionalItems": False}, {"prefixItems": [{"type": "string"}], "items": False}),
    ({"items": {"type": "string"}, "additionalItems": False}, {"items": {"type": "string"}}),
    ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}}),
    ({"title": "T", "$comment": "c", "examples": [1], "default": 3}, {"default": 3}),
    ({"properties": {"title": {"title": "x"}, "description": {"type": "string"}}}, {"properties": {"title": {}, "description": {"type": "string"}}}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"), [pair for pair in OLD if "definitions" not in pair[0] or "properties" in pair[0]]
)
def test_older_drafts_become_2020_12(old: dict[str, Any], new: dict[str, Any]) -> None:
    faults = Faults()
    found = rewrite(Document("m", {"s": old}, None, "", 0), faults, "s")
    assert not faults.items and found is not None and found.schema == new
    assert jsonschema_rs.meta.is_valid(found.schema)


def test_descriptions_are_found_wherever_they_stand() -> None:
    schema = {
        "description": "root",
        "properties": {"a/b": {"description": "slash"}, "list": {"items": [{"description": "first"}]}},
        "definitions": {"d": {"description": "deep", "enum": [{"description": "data"}]}},
    }
    found = rewrite(Document("m", {"s": schema}, None, "", 0), Faults(), "s")
    assert found is not None
    assert found.docs == {
        "": ("s", "description"),
        "/properties/a~1b": ("s", "properties", "a/b", "description"),
        "/properties/list/prefixItems/0": ("s", "properties", "list", "items", 0, "description"),
        "/$defs/d": ("s", "definitions", "d", "description"),
    }
    assert found.schema["$defs"]["d"]["enum"] == [{"description": "data"}]


def test_the_real_tools_of_captured_servers_are_rewritten_or_named(shared_data: Path) -> None:
    import orjson

    for path in sorted((shared_data / "mcp").rglob("*.json")):
        try:
            document = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError:
            continue
        for tool in _tools_in(document):
            faults = Faults()
            found = rewrite(Document(path.name, {"s": tool["inputSchema"]}, None, "", 0), faults, "s")
            assert (found is None) == bool(faults.items)
            if found is not None:
                assert jsonschema_rs.meta.is_valid(found.schema)


def _tools_in(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        own = [value] if isinstance(value.get("inputSchema"), dict) else []
        return own + [tool for part in value.values() for tool in _tools_in(part)]
    return [tool for part in value for tool in _tools_in(part)] if isinstance(value, list) else []


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=3)))
def test_a_cycle_is_found_when_and_only_when_there_is_one(edges: dict[str, list[str]]) -> None:
    cycle = cycle_in(edges)

    def returns(name: str) -> bool:
        reached: set[str] = set()
        for _ in range(len(edges) + 1):
            reached |= {target for at in (reached or {name}) for target in edges.get(at, ())} | set(edges.get(name, ()))
        return name in reached

    assert (cycle is not None) == any(returns(name) for name in edges)
    if cycle is not None:
        assert all(two in edges[one] for one, two in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


SOURCES = [
    *Path(__file__).parents[2].glob("harnessctl/manifests/*.py"),
    *Path(__file__).parents[2].glob("harnessctl/compile/*.py"),
    *Path(__file__).parents[2].glob("harnessctl/augment/*.py"),
    *Path(__file__).parents[2].glob("harnessctl/evaluate/judging/*.py"),
    Path(__file__).parents[2] / "harnessctl/evaluate/suite_manifests.py",
]


def test_every_code_is_declared_documented_and_used() -> None:
    written: set[str] = set()
    for path in SOURCES:
        if path.name != "codes.py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    written.add(node.value)
                elif isinstance(node, ast.JoinedStr) and isinstance(node.values[-1], ast.Constant):
                    ending = str(node.values[-1].value)
                    if ending in ("-unknown", "-duplicate"):
                        written |= {code for code in CODES if code.endswith(ending)}
    assert set(CODES) <= written, sorted(set(CODES) - written)
    documented = set(
        re.findall(r"^### `([a-z-]+)`", (Path(__file__).parents[2] / "docs/faults.md").read_text(), re.MULTILINE)
    )
    assert documented == set(CODES)


def test_sarif_is_of_the_form_that_scanners_read() -> None:
    faults = [
        Fault("skills/a b/SKILL.md", 3, 7, "ref-bare", "a bare mention", "x", "`x`", "write `x`"),
        Fault("harness.lock", 0, 0, "lock-missing", "the project is not locked", severity="warning"),
    ]
    sarif = to_sarif(faults)
    (run,) = sarif["runs"]
    assert (sarif["version"], run["tool"]["driver"]["name"], run["columnKind"]) == (
        "2.1.0",
        "harnessctl",
        "unicodeCodePoints",
    )
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["lock-missing", "ref-bare"]
    lock, bare = run["results"]
    assert lock == {
        "ruleId": "lock-missing",
        "ruleIndex": 0,
        "level": "warning",
        "message": {"text": "the project is not locked"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": "harness.lock", "uriBaseId": "%SRCROOT%"}}}],
    }
    assert bare["ruleIndex"] == 1 and bare["message"]["text"] == "a bare mention; got x; allowed `x`. Hint: write `x`"
    place = bare["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "skills/a%20b/SKILL.md" and place["region"] == {
        "startLine": 3,
        "startColumn": 7,
    }


def test_the_shipped_project_compiles_without_a_fault(repository: Path, tmp_path: Path) -> None:
    for folder in ("manifests", "skills"):
        shutil.copytree(repository / folder, tmp_path / folder)
    assert [fault.render() for fault in validate_project(tmp_path).items] == []
