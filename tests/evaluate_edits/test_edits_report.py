"""Errors before and after an edit: counted by hand, marked in replies, in the report of a run and from two runs."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from edits_project import write_project

from harnessctl.cli.main import main
from harnessctl.evaluate.edits import Change, changes, edited_of, findings_of, marked
from harnessctl.evaluate.files import read_records
from harnessctl.records.score import Finding, Score


def score(name: str, arm: str, *kinds: str, scored: bool = True) -> Score:
    found = [Finding(kind=kind, start=0, end=1, text="x") for kind in kinds]
    rubrics = {"NAT": not kinds} if scored else {}
    return Score(
        id=name, scenario=name, scorer="rules", bundle="b", arm=arm, rubrics=rubrics, findings=found,
    )  # fmt: skip


BEFORE = [
    score("a", "before", "uncertainty", "uncertainty", "system-talk"),
    score("b", "before", "uncertainty"),
    score("c", "before"),
    score("d", "before", "markup"),
]
AFTER = [
    score("a@edited", "after", "uncertainty"),
    score("b@edited", "after"),
    score("c@edited", "after", "stiffness"),
    score("d@edited", "after", scored=False),
]


def test_errors_are_counted_over_the_pairs_that_both_have() -> None:
    found = edited_of([*BEFORE, *AFTER])
    assert found is not None
    assert found.pairs == 3
    assert found.total == Change(before=4, after=2, relative=-0.5)
    assert found.items == Change(before=2, after=2, relative=0.0)
    assert list(found.kinds) == ["uncertainty", "system-talk", "stiffness"]
    assert found.kinds["uncertainty"] == Change(before=3, after=1, relative=-2 / 3)
    assert found.kinds["stiffness"] == Change(before=0, after=1, relative=None)
    head, rows = found.table()
    assert head == ("errors, 3 pairs", "before", "after", "change")
    assert rows[0] == ("uncertainty", "3", "1", "-66.7%")
    assert rows[2] == ("stiffness", "0", "1", "-")
    assert rows[-2:] == [("total", "4", "2", "-50.0%"), ("items with an error", "2", "2", "+0.0%")]


def test_one_arm_has_nothing_to_be_held_against() -> None:
    assert edited_of(BEFORE) is None
    assert findings_of(BEFORE) == {"uncertainty": 3, "system-talk": 1, "markup": 1}


def test_two_runs_are_held_against_each_other() -> None:
    plain = [score(one.scenario, "", *(f.kind for f in one.findings)) for one in BEFORE]
    later = [score(one.scenario, "") for one in BEFORE]
    assert changes(plain, later).total == Change(before=5, after=0, relative=-1.0)


def test_errors_are_marked_in_the_reply() -> None:
    reply = "I'm not sure, the data is gone."
    spans = [(0, 12), (14, 22), (18, 22)]
    found = [Finding(kind="uncertainty", start=a, end=b, text=reply[a:b]) for a, b in spans]
    one = Score(id="a", scenario="a", scorer="rules", bundle="b", findings=found)
    assert marked(reply, one) == "[I'm not sure], [the data] is gone."
    assert marked(reply, one, "<b>", "</b>").startswith("<b>I'm not sure</b>, ")
    assert marked("fine", Score(id="a", scenario="a", scorer="rules", bundle="b")) == "fine"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("edited"))


@pytest.fixture(scope="module")
def run(project: Path) -> Path:
    folder = project / "run"
    keys = ["edit-compliance", "harness=mini", "edit=mini-plain", "flaw=discloses", "n=40"]
    assert main(["eval", *keys, "--run-dir", str(folder), "--project", str(project)]) == 0
    return folder


def test_a_run_answers_each_item_under_both_harnesses(run: Path) -> None:
    scores = list(read_records(run, "scores"))
    assert [one.arm for one in scores] == ["before", "after"] * 40
    assert [one.scenario for one in scores[1::2]] == [f"{one.scenario}@edited" for one in scores[::2]]
    record = orjson.loads((run / "run.json").read_bytes())
    assert {one.bundle for one in scores[::2]} == {record["bundle"]}
    assert {one.bundle for one in scores[1::2]} == {record["extra"]["edited"]}


def test_the_edit_lowers_what_it_forbids_and_nothing_else(run: Path) -> None:
    found = edited_of(read_records(run, "scores"))
    assert found is not None
    assert found.pairs == 40
    assert found.total.before > found.total.after > 0
    assert found.kinds["system-talk"].after == 0 < found.kinds["system-talk"].before
    assert found.kinds["uncertainty"].after > 0


def test_the_report_shows_counts_and_cases(run: Path) -> None:
    report = (run / "report.md").read_text()
    assert "| errors, 40 pairs | before | after | change |" in report
    assert "| intent | n | Natural | Acc | Eff |" in report
    cases = report.partition("| asked | before | after |")[2]
    assert cases.count("\n|") >= 5
    assert "[" in cases and "]" in cases


def test_scoring_again_changes_nothing(run: Path) -> None:
    before = (run / "scores.jsonl").read_bytes()
    assert main(["rescore", str(run)]) == 0
    assert (run / "scores.jsonl").read_bytes() == before


def test_the_oracle_is_natural_under_both(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    keys = ["edit-compliance-held-out", "harness=mini", "edit=mini-plain", "n=20"]
    assert main(["eval", *keys, "--project", str(project), "--json"]) == 0
    report = orjson.loads(capsys.readouterr().out)["report"]
    assert (report["total"]["items"], report["total"]["rubrics"]) == (40, {"NAT": 1.0})
    assert report["edited"]["total"] == {"before": 0, "after": 0, "relative": None}


def test_a_run_is_not_gone_on_with_after_another_edit(
    capsys: pytest.CaptureFixture[str], project: Path, run: Path
) -> None:
    hooks = project / "manifests" / "hooks" / "plain.yaml"
    text = hooks.read_text()
    hooks.write_text(text.replace("no data, ", ""))
    try:
        assert main(["eval", "--resume", str(run), "--project", str(project)]) == 2
        assert "was made with another edited harness" in capsys.readouterr().err
    finally:
        hooks.write_text(text)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["edit-compliance", "edit=mini"], "edit=mini is the harness itself"),
        (["edit-compliance", "edit=nonsuch"], "no harness `nonsuch`"),
        (["edit-compliance", "edit=gone.bundle.json"], "no bundle at gone.bundle.json"),
        (["live-qa", "edit=mini-plain"], "which live-qa does not ask"),
    ],
)
def test_what_is_wrong_with_an_edit_is_said(
    capsys: pytest.CaptureFixture[str], project: Path, keys: list[str], said: str
) -> None:
    assert main(["eval", *keys, "harness=mini", "n=2", "--project", str(project)]) == 2
    assert said in capsys.readouterr().err
