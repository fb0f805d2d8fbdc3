"""Code and files in bundles: which modules are embedded, and commands that could not be started from a bundle."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harnessctl.bundle import Bundle

Faults = Callable[..., list[str]]
TOOLS = "manifests/tools/catalog.yaml"
HOOKS = "manifests/hooks/guards.yaml"
CHECK = "{max_chars: {limit: reply_max_chars}}"
SHELF = "manifests/tools/shelf.py"


def test_everything_of_the_project_that_is_imported_is_embedded(bundle: Callable[..., Bundle]) -> None:
    made = bundle(
        {
            SHELF: "import json\nimport orjson\nfrom shop.catalog import load\nfrom shop import texts\n"
            "def get_product(link_id):\n    from prices import price\n    return load(link_id), price(link_id)\n",
            "shop/__init__.py": "NAME = 'shop'\n",
            "shop/catalog.py": "from . import texts\nfrom .deep.rows import row\n\n\ndef load(n):\n    return row(n)\n",
            "shop/texts.py": "HELLO = 1\n",
            "shop/deep/rows.py": "from ..texts import HELLO\n\n\ndef row(n):\n    return HELLO\n",
            "shop/unused.py": "raise SystemExit\n",
            "json.py": "raise SystemExit('the standard library is not shadowed')\n",
        }
    )
    assert set(made.state.code) == {"shelf", "prices", "shop", "shop.catalog", "shop.texts", "shop.deep.rows"}
    assert "shop/deep/rows.py" in made.sources


def test_what_is_beside_the_manifest_comes_first(bundle: Callable[..., Bundle]) -> None:
    made = bundle({"shelf.py": "def get_product(link_id):\n    return 'root'\n"})
    assert "root" not in made.state.code["shelf"]


def test_an_installed_function_is_not_embedded(bundle: Callable[..., Bundle]) -> None:
    made = bundle({TOOLS: ("shelf:get_product", "orjson:loads")})
    assert made.state.code == {}


def test_two_modules_of_one_name_are_a_fault(faults: Faults) -> None:
    change = {
        "manifests/hooks/shelf.py": "def check(names):\n    return True\n",
        HOOKS: (CHECK, "{all: [{python: 'shelf:check'}, " + CHECK + "]}"),
    }
    (found,) = faults(change)
    assert found.startswith(
        "manifests/hooks/shelf.py:1:1: error[code-clash]: two modules of the harness are called `shelf`"
    )


@pytest.mark.parametrize("signature", ["()", "(a, b)", "(names, *, strict)"])
def test_a_check_is_a_function_of_the_names(faults: Faults, signature: str) -> None:
    change = {
        "manifests/hooks/guard.py": f"def check{signature}:\n    return True\n",
        HOOKS: (CHECK, "{all: [{python: 'guard:check'}, " + CHECK + "]}"),
    }
    (found,) = faults(change)
    assert "error[code-signature]: the function `check` is called with one argument, the names of the event" in found


@pytest.mark.parametrize("signature", ["(names)", "(names, limit=3)", "(*args)"])
def test_a_check_that_takes_the_names_is_fine(faults: Faults, signature: str) -> None:
    change = {
        "manifests/hooks/guard.py": f"def check{signature}:\n    return True\n",
        HOOKS: (CHECK, "{all: [{python: 'guard:check'}, " + CHECK + "]}"),
    }
    assert faults(change) == []


def command(text: str) -> tuple[str, str]:
    return (CHECK, "{all: [" + CHECK + ", {command: " + text + "}]}")


def test_a_command_with_its_files_is_embedded(bundle: Callable[..., Bundle]) -> None:
    made = bundle(
        {
            HOOKS: command(
                "{run: [guards/check.sh, --strict], files: [guards/check.sh, guards/words.txt], env: [SHOP_MODE]}"
            ),
            "guards/check.sh": "#!/bin/sh\nexit 0\n",
            "guards/words.txt": "no\n",
        }
    )
    assert made.state.files == {"guards/check.sh": "#!/bin/sh\nexit 0\n", "guards/words.txt": "no\n"}
    assert "guards/words.txt" in made.sources


@pytest.mark.parametrize(
    ("text", "files", "expected"),
    [
        ("{run: [guards/gone.sh]}", {}, "error[command-missing]: the command's file is not there; got guards/gone.sh"),
        (
            "{run: [python3, x.py], files: [x.py]}",
            {},
            "error[command-missing]: the command's file is not there; got x.py",
        ),
        (
            "{run: [python3, g/x.py]}",
            {"g/x.py": ""},
            "error[command-not-embedded]: g/x.py is a file of the project that the bundle would not carry",
        ),
        (
            "{run: [./g/x], files: [g/x]}",
            {"g/x": "exit 0"},
            "error[command-not-executable]: the program does not say what runs it; got ./g/x",
        ),
        ("{shell: 'g/x.sh --now'}", {}, "error[command-missing]"),
        ('{shell: "g/x.sh \'open"}', {}, "error[command-form]: the shell line cannot be read"),
        ("{run: [a], shell: b}", {}, "error[command-form]: a command is given in exactly one way"),
        ("{run: [sh], env: ['KEY=value']}", {}, "error[command-form]: not the name of an environment variable"),
        ("{run: [sh], files: [../x]}", {}, "error[command-outside]: a hook's file lies outside the project; got ../x"),
        ("{run: [sh], files: [/etc/passwd]}", {}, "error[command-outside]"),
        (
            "{run: [sh], files: [b.bin]}",
            {"b.bin": b"\xff\xfe"},
            "error[command-binary]: a hook's file is not UTF-8 text",
        ),
        (
            "{run: [check.sh], files: [check.sh]}",
            {"manifests/hooks/check.sh": ""},
            "hint: write it from the root: manifests/hooks/check.sh",
        ),
        ("{run: [no-such-program-here]}", {}, "warning[command-not-found]: the program is not on this machine's PATH"),
    ],
)
def test_commands_that_could_not_be_started(
    faults: Faults, text: str, files: dict[str, str | bytes], expected: str
) -> None:
    found = faults({HOOKS: command(text), **files})
    assert any(expected in fault and "guards.yaml:13:" in fault for fault in found), found


def test_a_module_that_leads_out_of_the_project_is_not_read(
    shop: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from harnessctl.compile import validate_project

    secret = tmp_path_factory.mktemp("elsewhere") / "prices.py"
    secret.write_text("KEY = 'secret'\n")
    root = shop()
    (root / "prices.py").unlink()
    (root / "prices.py").symlink_to(secret)
    found = [fault.render() for fault in validate_project(root).items]
    assert any(
        "prices.py: error[source-outside]: the symbolic link leads out of the project" in fault for fault in found
    )


def test_looking_for_code_runs_none(faults: Faults) -> None:
    marker = "sys.modules['compile_ran_project_code'] = sys\n"
    assert faults({SHELF: "import sys\n" + marker + "def get_product(link_id):\n    pass\n"}) == []
    assert "compile_ran_project_code" not in sys.modules
