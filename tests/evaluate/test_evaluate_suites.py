"""Suites as manifests: what they settle, what is wrong with them, and their gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from evaluate_jobs import Evaluate

from harnessctl.errors import FaultsError, UsageError
from harnessctl.evaluate.gate import gated
from harnessctl.evaluate.sets import item_sets
from harnessctl.evaluate.suite_manifests import check_suites, settled, suite_manifest, suite_names
from harnessctl.manifests.specs.suite import Gate

SUITE = """apiVersion: harnessctl/v1
kind: Suite
name: nightly
set: variant-qa
n: 50
repeats: 2
sampling: {temperature: 0.5}
limits: {tool_timeout_s: 2}
gate: {least: {average: 90}, coverage: 99}
"""


def written(root: Path, text: str = SUITE, name: str = "nightly") -> Path:
    folder = root / "manifests" / "suites"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
    return root


def test_what_the_command_leaves_null_is_the_suites(tmp_path: Path) -> None:
    suite = suite_manifest(written(tmp_path), "nightly")
    config: dict[str, Any] = {
        "suite": "nightly",
        "set": None,
        "n": None,
        "repeats": 5,
        "seed": 3,
        "sampling": {"temperature": None, "top_p": 0.5, "max_tokens": None},
        "limits": {"deadline_s": 9.0, "tool_timeout_s": None},
    }
    found = settled(config, suite)
    assert (found["set"], found["n"], found["repeats"], found["seed"]) == ("variant-qa", 50, 5, 3)
    assert found["sampling"] == {"temperature": 0.5, "top_p": 0.5, "max_tokens": 256}
    assert found["limits"]["deadline_s"] == 9.0 and found["limits"]["tool_timeout_s"] == 2
    assert settled(found, suite) == found


def test_a_set_without_a_manifest_is_a_suite_by_its_name(tmp_path: Path) -> None:
    for name in item_sets():
        assert suite_manifest(tmp_path, name).set in item_sets()
    assert {"live-qa", "variant-qa"} <= set(suite_names(None))
    with pytest.raises(UsageError, match="no suite 'live-qq'") as raised:
        suite_manifest(None, "live-qq")
    assert "live-qa" in raised.value.hint


@pytest.mark.parametrize(
    ("old", "new", "code", "place"),
    [
        ("set: variant-qa", "set: variants", "suite-set", "4:6"),
        ("name: nightly", "name: daily", "suite-name", "3:7"),
        ("{average: 90}", "{avrage: 90}", "suite-metric", "9:24"),
        ("coverage: 99", "coverage: 101", "schema-range", "9:40"),
        ("repeats: 2", "repeats: two", "schema-type", "6:10"),
    ],
)
def test_what_is_wrong_has_its_place(tmp_path: Path, old: str, new: str, code: str, place: str) -> None:
    root = written(tmp_path, SUITE.replace(old, new))
    with pytest.raises(FaultsError) as raised:
        suite_manifest(root, "nightly")
    found = [fault for fault in raised.value.faults if fault.code == code]
    assert found, raised.value.faults
    assert f"{found[0].line}:{found[0].col}" == place
    assert [fault.code for fault in check_suites(root).items] == [fault.code for fault in raised.value.faults]


def test_a_gate_compares_before_rounding_and_takes_no_missing_mean(evaluated: Evaluate) -> None:
    _, report = evaluated(n=10)
    assert gated(report, Gate(least={"average": 100})).passed
    total = msgspec.structs.replace(report.total, average=0.8999, skill_selection=None)
    lower = msgspec.structs.replace(report, total=total, coverage=0.9)
    came = gated(lower, Gate(least={"average": 90, "skill_selection": 0}, coverage=95))
    assert not came.passed
    assert [(one.metric, one.found) for one in came.missed] == [
        ("coverage", 90.0),
        ("average", pytest.approx(89.99)),
        ("skill_selection", None),
    ]
    assert "skill_selection no score, at least 0" in came.told()
