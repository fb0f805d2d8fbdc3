"""Operators are found by their files; what does not fit is a fault with its place."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harnessctl.augment import operators
from harnessctl.augment.discovery import find_operators, operators_of, shipped_operators
from harnessctl.augment.operator import STAGES
from harnessctl.errors import Faults, FaultsError

Write = Callable[[Mapping[str, str | bytes]], Path]

OWN = '''"""Shouts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Shout:
    name: str = "shout"
    dimension: str = "skill-content"
    stage: str = "reword"
    keeps_difficulty: bool = True
    reads: frozenset = frozenset()

    options = {"volume": 3}

    def targets(self, draft):
        return [skill.name for skill in draft.state.skills]

    def apply(self, target, draft, settings, stream):
        draft.changes.skill_order = [skill.name for skill in reversed(draft.state.skills)]
        return True


OPERATOR = Shout()
'''


def test_every_module_of_the_folder_is_an_operator_of_its_name():
    found = shipped_operators()
    stems = [module.name for module in pkgutil.iter_modules(operators.__path__)]
    assert sorted(found) == sorted(stem.replace("_", "-") for stem in stems)
    for stem in stems:
        module = importlib.import_module(f"harnessctl.augment.operators.{stem}")
        assert module.__doc__ and module.__doc__.startswith(stem.replace("_", "-"))
        assert module.OPERATOR.stage in STAGES


def test_a_project_adds_its_own(project: Write):
    root = project({"manifests/operators/shout.py": OWN})
    found = find_operators(root)
    assert found["shout"].options == {"volume": 3}
    assert "shout" not in shipped_operators()
    assert find_operators(root)["shout"] is found["shout"], "equal sources are loaded once"


def test_two_projects_may_have_operators_of_one_name(tmp_path: Path):
    for place, volume in (("a", "3"), ("b", "4")):
        file = tmp_path / place / "manifests/operators/shout.py"
        file.parent.mkdir(parents=True)
        file.write_text(OWN.replace('"volume": 3', f'"volume": {volume}'))
    first, second = (find_operators(tmp_path / place)["shout"] for place in ("a", "b"))
    assert (first.options, second.options) == ({"volume": 3}, {"volume": 4})


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("shout.py", "def f(:\n", "manifests/operators/shout.py:1: error[code-syntax]: the operator is not Python"),
        ("shout.py", "\n\nraise ValueError('no')\n", "shout.py:3: error[operator-load]: the operator fails when it is loaded: ValueError: no"),
        ("shout.py", "import nothing_of_that_name\n", "shout.py:1: error[operator-load]: the operator fails when it is loaded: ModuleNotFoundError"),
        ("shout.py", "import sys\nsys.exit(3)\n", "shout.py:2: error[operator-load]: the operator fails when it is loaded: SystemExit: 3"),
        ("shout.py", "x = 1\n", "error[operator-form]: the file has no OPERATOR"),
        ("shout.py", b"\x00", "error[code-syntax]"),
        ("whisper.py", OWN, "error[operator-form]: the operator's name is not its file's; got shout; allowed whisper"),
        ("shout.py", OWN.replace('"reword"', '"later"'), "error[operator-form]: the operator's `stage` does not fit; got 'later'; allowed mask, add,"),
        ("shout.py", OWN.replace('"skill-content"', '"mood"'), "the operator's `dimension` does not fit; got 'mood'"),
        ("shout.py", OWN.replace("    options = {\"volume\": 3}\n", ""), "the operator's `options` does not fit; got nothing; allowed a mapping"),
        ("shout.py", OWN.replace("frozenset = frozenset()", "frozenset = frozenset({'depth'})"), "reads a setting that there is not; got depth; allowed count, ranges"),
        ("shout.py", OWN.replace("def targets", "def target"), "the operator has no `targets`; allowed targets(draft)"),
        ("shout.py", OWN.replace("settings, stream", "settings"), "`apply` does not take what it is called with; got apply(target, draft, settings)"),
        ("tool_rename.py", OWN.replace('"shout"', '"tool-rename"'), "error[operator-duplicate]: two operators have one name; got `tool-rename` of harnessctl itself"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_fault(project: Write, name: str, source: str | bytes, expected: str):
    root = project({f"manifests/operators/{name}": source})
    faults = Faults()
    found = operators_of(root, faults)
    assert set(found) == set(shipped_operators())
    assert any(expected in fault.render() for fault in faults.items), [fault.render() for fault in faults.items]
    with pytest.raises(FaultsError):
        find_operators(root)


def test_a_link_out_of_the_project_is_not_followed(project: Write, tmp_path_factory: pytest.TempPathFactory):
    outside = tmp_path_factory.mktemp("outside") / "shout.py"
    outside.write_text(OWN)
    root = project({"manifests/harness.yaml": ""})
    (root / "manifests/operators").mkdir()
    (root / "manifests/operators/shout.py").symlink_to(outside)
    with pytest.raises(FaultsError, match="1 error"):
        find_operators(root)
