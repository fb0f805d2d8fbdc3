"""What code, programs and tables may be named: functions that can be called, files that there are, nothing that hangs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harnessctl.compile import compile_project, validate_project

Faults = Callable[..., list[str]]
Shop = Callable[..., Path]
HOOKS = "manifests/hooks/guards.yaml"
TOOLS = "manifests/tools/catalog.yaml"
SHORT = "{max_chars: {limit: reply_max_chars}}"
MODULE = "manifests/hooks/own.py"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def check(a, b):\n    return True\n\n\ncheck.inline = True\n", "code-signature]: the function `check` is called with"),
        ("def check(names):\n    return True\n\n\ncheck.inline = True\n", ""),
        ("for _ in range(1):\n    def check(names):\n        return True\n", ""),
        ("class check:\n    pass\n", "code-function]: `check` is a class, and a function is wanted; got manifests/hooks/own.py:1"),
        ("check = 3\n", "code-function]: `check` is a value, and a function is wanted"),
        ("check = lambda names: True\n", ""),
        ("from os.path import exists as check\n", ""),
        ("x = '\\d'\n\n\ndef check(names):\n    return 1 is 1\n", ""),
        ("x = " + "-" * 100_000 + "1\n", "code-syntax]: the module is not Python"),
        (b"# caf\xe9\n", "own.py:1: error[text-encoding]: the module is not UTF-8 text; got byte 0xe9"),
        ("#" * 4_000_001, "text-too-large]: the module is too large; got 4000001 bytes; allowed 4000000"),
    ],
    ids=lambda value: str(value)[:24],
)  # fmt: skip
def test_the_function_of_a_check(faults: Faults, code: str, said: str) -> None:
    found = faults({HOOKS: (SHORT, "{python: 'own:check'}"), MODULE: code})
    found = [text for text in found if "limit-unused" not in text]
    assert [said in text for text in found] == ([True] if said else []), found


def test_a_module_that_is_a_folder_or_a_pipe_is_missing(shop: Shop) -> None:
    root = shop({HOOKS: (SHORT, "{python: 'own:check'}")})
    (root / MODULE).mkdir()
    os.mkfifo(root / "own.py")
    (fault,) = [fault for fault in validate_project(root).items if fault.severity == "error"]
    assert fault.code == "code-missing" and fault.hint == ""


def test_no_parameter_of_a_python_tool_is_called_ctx(faults: Faults) -> None:
    (text,) = faults(
        {
            TOOLS: (
                "        link_id: {type: integer, minimum: 1",
                "        ctx: {type: string}\n        link_id: {type: integer, minimum: 1",
            )
        }
    )
    assert "error[tool-parameters]: a function gets what it may use of the request as `ctx`" in text


@pytest.mark.parametrize("path", ["a\\0b", "x" * 300, "guards", "x" * 300 + "/y.py"])
@pytest.mark.parametrize("field", ["files", "run"])
def test_a_path_that_no_file_system_holds(faults: Faults, path: str, field: str) -> None:
    command = {"files": f'{{shell: "true", files: ["{path}"]}}', "run": f'{{run: ["sh", "-c", "true", "{path}"]}}'}[
        field
    ]
    found = faults({HOOKS: (SHORT, f"{{command: {command}}}")})
    codes = {text.partition("[")[2].partition("]")[0] for text in found} - {"limit-unused"}
    assert codes == ({"command-missing"} if field == "files" or path.endswith(".py") else set())


@pytest.mark.parametrize("file", ['"a\\0b"', "x" * 300, ".", "stall"])
def test_a_table_that_no_file_system_holds(faults: Faults, file: str) -> None:
    (text,) = faults({"manifests/worlds/stall.yaml": ("file: stall/faq.csv", f"file: {file}")})
    assert "manifests/worlds/stall.yaml:6:15: error[world-file]: a table's file is not there" in text


def test_a_long_word_of_a_command_leaves_a_cache_that_can_be_asked(shop: Shop) -> None:
    root = shop({HOOKS: (SHORT, f'{{all: [{SHORT}, {{command: {{run: [sh, -c, "true", "{"x." * 150}"]}}}}]}}')})
    compile_project(root)
    assert compile_project(root).fresh


FAQ = {
    "query and filters": ("{query: {type: string}, top_k: {type: integer}, topic: {type: string}}", "[query]", []),
    "null": ("{query: {type: string}, top_k: {type: [integer, 'null']}}", "[query]", []),
    "no query": ("{text: {type: string}}", "[text]", ["has no required parameter `query`", "cannot be narrowed by `text`"]),
    "optional query": ("{query: {type: string}}", "[]", ["has no required parameter `query`"]),
    "column": ("{query: {type: string}, price: {type: number}}", "[query]", ["cannot be narrowed by `price`; got price; allowed query, top_k and topic"]),
    "inner column": ("{query: {type: string}, filters: {type: object, properties: {price: {}}}}", "[query]", ["cannot be narrowed by `price`"]),
    "types": ("{query: {type: integer}, top_k: {type: string}}", "[query]", ["parameter `query` has another type; got integer", "parameter `top_k` has"]),
}  # fmt: skip


@pytest.mark.parametrize(("properties", "required", "said"), FAQ.values(), ids=FAQ.keys())
@pytest.mark.parametrize("field", ["run", "simulate"])
def test_the_parameters_of_search_faq(
    faults: Faults, properties: str, required: str, said: list[str], field: str
) -> None:
    parameters = f"    parameters: {{type: object, properties: {properties}, required: {required}}}\n"
    found = faults(
        {
            TOOLS: ("    run: {builtin: search_faq}\n", f"{parameters}    {field}: {{builtin: search_faq}}\n"),
            "manifests/worlds/stall.yaml": ("faq: {table: faq}", "faq: {table: faq, filter: [topic]}"),
        }
    )
    assert len(found) == len(said), found
    for words in said:
        assert any("catalog.yaml:24:11: error[tool-parameters]" in text and words in text for text in found), found


LOAD = "  - name: open_skill\n    description: Opens.\n    {}\n  - name: refuse\n"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("parameters: {type: object, properties: {skill: {type: integer}}}\n    run: {builtin: load_skill}", "the parameter for the skill is its name; got integer"),
        ("simulate: {builtin: load_skill}", "loading a skill is never simulated"),
    ],
)  # fmt: skip
def test_the_tool_that_loads_skills(faults: Faults, fields: str, said: str) -> None:
    (text,) = faults({TOOLS: ("  - name: refuse\n", LOAD.format(fields))})
    assert said in text


def test_tools_whose_names_differ_in_case_alone_are_a_warning(faults: Faults) -> None:
    (text,) = faults({TOOLS: ("  - name: refuse\n", "  - name: Refuse\n    description: Ends.\n    final: {}\n  - name: refuse\n")})  # fmt: skip
    assert "warning[tool-twin]: two tools have names that differ in case alone" in text
