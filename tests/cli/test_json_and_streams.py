"""`--json` is one JSON document whatever happens; other output suits the stream that it goes to."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harnessctl.cli import main as program
from harnessctl.cli.main import main


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "--bogus"],
        ["compile", "extra"],
        ["compile", "--harness", "nope"],
        ["diff"],
        ["diff", "nope"],
        ["render", "--loop", "foo"],
        ["render", "--context", "{bad"],
        ["verify"],
        ["verify", "nope"],
        ["show", "nope"],
        ["show", "build/nope.bundle.json"],
        ["schema", "Nope"],
        ["docs", "nope"],
        ["models", "pull"],
        ["import", "skills", "nope"],
        ["new", "skill"],
        ["new", "skill", "Nope"],
        ["new", "recipe", "x", "--job", "../../x"],
        ["init", "."],
        ["bogus"],
        [],
    ],
)
def test_an_error_is_one_document_on_stdout(harnessctl, shop, arguments):
    result = harnessctl(*arguments, "--json", cwd=shop)
    assert result.code in (1, 2)
    assert set(result.json) == {"error", "hint", "faults"} and result.json["error"]
    assert result.err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate"],
        ["compile"],
        ["compile", "--locked"],
        ["show"],
        ["show", "--inventory"],
        ["render"],
        ["diff", ".", "."],
        ["doctor"],
        ["docs"],
        ["docs", "quickstart"],
        ["schema"],
        ["schema", "Skill"],
        ["models", "list"],
        ["new", "skill", "greet"],
        ["new", "tool", "get_stock"],
        ["new", "hook", "short"],
        ["new", "recipe", "mine"],
        ["init", "deeper"],
        ["schema", "--all", "schemas"],
    ],
)
def test_an_answer_is_one_document_on_stdout(harnessctl, shop, arguments):
    harnessctl("compile", cwd=shop)
    result = harnessctl(*arguments, "--json", cwd=shop)
    assert (result.code, result.err) == (0, "")
    assert result.json is not None


def test_an_interrupt_is_one_document_too(harnessctl, shop, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("harnessctl.compile.validate_project", interrupted)
    result = harnessctl("validate", "--json", cwd=shop)
    assert (result.code, result.json["error"]) == (130, "interrupted")
    assert harnessctl("validate", cwd=shop).code == 130


def test_what_the_system_refuses_is_an_error_and_no_traceback(harnessctl, shop, monkeypatch):
    def refused(*arguments):
        raise PermissionError(13, "Permission denied", "/somewhere")

    monkeypatch.setattr("harnessctl.compile.validate_project", refused)
    result = harnessctl("validate", "--json", cwd=shop)
    assert (result.code, result.json["error"]) == (1, "the system refused /somewhere: Permission denied")


def test_a_full_device_is_an_error(shop):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "harnessctl", "show", "--project", str(shop)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
    assert (done.returncode, done.stderr) == (1, "error: the system refused: No space left on device\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_stream_that_cannot_show_a_character_costs_that_character(shop, monkeypatch, encoding):
    text = "你好 é 😀"

    def printed(*arguments):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["render", "--text", text, "--project", str(shop), *arguments]) == 0
        stream.flush()
        return stream.buffer.getvalue()

    assert json.loads(printed("--json"))["messages"][-1]["content"] == text
    assert rb"\u4f60\u597d" in printed()


def test_a_project_in_a_folder_of_any_name(harnessctl, shop, tmp_path):
    for name in ("商店 shop", "a b", os.fsdecode(b"caf\xe9")):
        root = tmp_path / name
        shutil.copytree(shop, root)
        compiled = harnessctl("compile", "--json", "--project", str(root))
        assert compiled.code == 0 and compiled.json["bundles"][0]["path"].startswith(str(root))
        assert harnessctl("validate", "--project", str(root)).code == 0
        assert harnessctl("compile", "--project", str(root)).out.startswith(str(tmp_path))


def test_a_table_in_a_pipe_has_no_trailing_blanks(harnessctl, shop):
    lines = harnessctl("show", "--inventory", cwd=shop).out.splitlines()
    assert lines[0].startswith("Table 11.") and [line for line in lines if line != line.rstrip()] == []


def test_no_colour_where_none_is_wanted(harnessctl, shop, monkeypatch):
    (shop / "skills/answer-question/SKILL.md").write_text("x")
    monkeypatch.setattr(program.sys.stderr.__class__, "isatty", lambda self: True, raising=False)
    assert "\x1b[" in harnessctl("validate", cwd=shop).err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in harnessctl("validate", cwd=shop).err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["harnessctl", "schema", "Har"], ["Harness"]),
        (["harnessctl", "docs", "quick"], ["quickstart"]),
        (["harnessctl", "init", "--template", ""], ["live-stream", "minimal"]),
        (["harnessctl", "compile", "--harness", "mini"], ["minimal"]),
    ],
)
def test_the_shell_completes_names(harnessctl, shop, words, found):
    harnessctl("compile", cwd=shop)
    done = subprocess.run(
        [sys.executable, "-c", "from harnessctl.cli.main import main; main()"],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "_HARNESSCTL_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True,
        text=True,
        cwd=shop,
    )
    assert done.stdout.split() == found, done.stderr
