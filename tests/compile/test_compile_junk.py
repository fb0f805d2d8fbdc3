"""Junk anywhere in any manifest is faults with known codes, never a crash; what still compiles is a sound bundle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compile_shop import SHOP
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.bundle import encode_bundle, read_bundle
from harnessctl.compile import compile_project, validate_project
from harnessctl.errors import Faults
from harnessctl.manifests.codes import CODES
from harnessctl.manifests.load import load_text

JUNK: list[Any] = [
    None, True, -1, 3.5, "", "x", "`get_product`", "{{ x }}", "{%", "a: b", [], ["x"], [None], {}, {"a": 1}, {"type": "object"},
    {"$ref": "#/x"}, {"properties": []}, {"required": 3}, 10**15, "中", "../x", "no_module:f", "**", "(", {"limit": "x"},
]  # fmt: skip
YAML = [path for path in SHOP if path.endswith(".yaml")]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*at, key))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(YAML), st.integers(0, 10**6), st.sampled_from(["value", "key", "remove"]), st.sampled_from(JUNK))
def test_junk_in_a_manifest(path: str, where: int, how: str, junk: Any) -> None:
    document = load_text(path, SHOP[path], Faults())
    assert document is not None
    value = document.value
    at = list(places(value))[1:]
    *parents, last = at[where % len(at)]
    parent = value
    for step in parents:
        parent = parent[step]
    if how == "value" or isinstance(parent, list):
        parent[last] = junk
    elif how == "key":
        parent[json.dumps(junk)] = parent.pop(last)
    else:
        del parent[last]
    assert survived({**SHOP, path: json.dumps(value, ensure_ascii=False)})


PIECES = [
    "",
    "{",
    "}",
    "`",
    "---\n",
    "\n",
    "\t",
    "- ",
    "## Rules\n",
    " {#a",
    "x=1",
    "```\n",
    ": ",
    "'",
    '"',
    "80",
    "1. ",
    "  ",
]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 12), st.sampled_from(PIECES))
def test_junk_in_a_skill(where: int, length: int, piece: str) -> None:
    text = SHOP["skills/item-qa/SKILL.md"]
    start = where % len(text)
    assert survived({**SHOP, "skills/item-qa/SKILL.md": text[:start] + piece + text[start + length :]})


def survived(files: dict[str, str]) -> bool:
    """Whether it is told what is wrong, or what is compiled reads back the same."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        faults = validate_project(root)
        if not all(fault.code in CODES and fault.path and fault.render() for fault in faults.items):
            return False
        if faults.errors:
            return True
        path = compile_project(root).path()
        return encode_bundle(read_bundle(path)) == path.read_bytes()
