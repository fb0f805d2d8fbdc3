"""Calibration: labels that are read and settled, what comes of them, and that it is always said whose they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from judge_project import Judging, answer, jury_of, write_scripts

from harnessctl.bundle.files import Bundle
from harnessctl.cli.main import main
from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.judging.calibration import Calibration, calibrate, curve, read_calibration
from harnessctl.evaluate.judging.construction import ANSWERED_BY, constructed
from harnessctl.evaluate.judging.labels import label_set, read_items
from harnessctl.evaluate.judging.tables import calibration_lines, calibration_tables
from harnessctl.records.calibration import CalibrationItem, Label
from harnessctl.records.comment import CommentInput, ViewerMessage


def item(name: str, *labels: tuple[Any, Any], texts: Sequence[str] = ("how much?",), **fields: Any) -> CalibrationItem:
    given: dict[str, Any] = {"source": "team", "role": "dev", "reply": "It is 18 yuan.", "intent": "price"} | fields
    return CalibrationItem(
        id=name,
        labels=[Label(accuracy=a, effectiveness=e, annotator=f"p{n}") for n, (a, e) in enumerate(labels)],
        request=CommentInput(id=name, messages=[ViewerMessage(text) for text in texts]),
        **given,
    )


def calibrated(tmp_path: Path, root: Path, bundle: Bundle, items: list[CalibrationItem], **said: Any) -> Calibration:
    models: Any = {name: Judging(says) for name, says in said.items()}
    labels = label_set(items, {})
    return asyncio.run(
        calibrate(tmp_path, root, jury_of(bundle, *models), labels, world=None, workers=2, models=models)
    )


def test_agreement_and_kappa_of_a_panel(tmp_path: Path, root: Path, judge: Bundle):
    grades = {"i1": (1, 1), "i2": (1, 0.5), "i3": (0, 0), "i4": (0, 1)}
    items = [item("i1", (1, 1)), item("i2", (1, 1)), item("i3", (0, 0)), item("i4", (1, 1))]
    found = calibrated(tmp_path, root, judge, items, a=lambda i, n: answer(i, *grades[i]))
    accuracy, effectiveness = found.agreement["accuracy"], found.agreement["effectiveness"]
    # Accuracy: label 1 1 0 1, panel 1 1 0 0: 3/4; by chance (3*2 + 1*2) / 16 = 1/2; kappa 1/2.
    assert (accuracy.share, accuracy.kappa) == (0.75, pytest.approx(0.5))
    # Effectiveness: one pair (1, 0.5): 1/4 seen. Labels 1 1 0 1, panel 1 .5 0 1. By chance over 16 pairs of grades:
    # label 1 with (1 .5 0 1): .25 + 1 = 1.25, three times 3.75; label 0: 1 + .25 + 0 + 1 = 2.25; 6 / 16 * 4 = 1.5.
    assert (effectiveness.share, effectiveness.kappa) == (0.75, pytest.approx(1 - 0.25 / 1.5))
    assert found.voters["a"]["accuracy"] == accuracy
    assert [(one.id, one.dimension, one.label, one.panel) for one in found.disagreements] == [
        ("i2", "effectiveness", 1, 0.5),
        ("i4", "accuracy", 1, 0),
    ]


def test_annotators_who_disagree_are_counted_and_decide_nothing():
    labels = label_set(
        [
            item("i1", (1, 1), (1, 0.5), (0, 1)),
            item("i2", (1, 1), (0, 0.5)),
            item("i3", (1, None), (1, None)),
            item("i4", (0, 0), (0, 1)),
        ],
        {},
    )
    assert [each.reference for each in labels.items] == [
        {"accuracy": 1, "effectiveness": 1},
        {"accuracy": None, "effectiveness": None},
        {"accuracy": 1, "effectiveness": None},
        {"accuracy": 0, "effectiveness": None},
    ]
    assert labels.split == {"accuracy": ["i2"], "effectiveness": ["i2", "i4"]}
    assert labels.pairwise == {"accuracy": (3, 6), "effectiveness": (1, 5)}


def test_duplicates_and_absent_items_are_counted(tmp_path: Path, root: Path, judge: Bundle):
    absent = CalibrationItem(id="gone", labels=[Label(accuracy=1)], source="team", role="test")
    found = calibrated(tmp_path, root, judge, [item("i1", (1, 1)), item("i1", (0, 0)), absent], a=None)
    assert (found.items, found.duplicates, found.absent) == (1, ["i1"], ["gone"])
    assert found.agreement["accuracy"].share == 1
    said = " ".join(calibration_lines(found))
    assert "Items passed over: 1 labelled twice, 1 absent (i1, gone)." in said


def test_no_item_at_all_is_refused(tmp_path: Path, root: Path, judge: Bundle):
    absent = CalibrationItem(id="gone", labels=[Label(accuracy=1)], source="team", role="test")
    with pytest.raises(UsageError, match="no labelled item can be judged: 1 are nowhere to be found"):
        calibrated(tmp_path, root, judge, [absent], a=None)


def test_votes_without_scores_are_no_agreement_and_no_disagreement(tmp_path: Path, root: Path, judge: Bundle):
    found = calibrated(
        tmp_path, root, judge, [item("i1", (1, 1)), item("i2", (1, 1))], a=lambda i, n: answer(i) if i == "i1" else "?"
    )
    assert found.agreement["accuracy"].table["1"] == {"0": 0, "1": 1, "-": 1}
    assert (found.panel.coverage, found.panel.voters[0].causes) == (0.5, {"prose": 1})
    assert found.disagreements == []


def test_disagreements_are_sorted_into_the_papers_classes(tmp_path: Path, root: Path, judge: Bundle):
    items = [
        item("several", (1, 0.5), texts=["how much is link 1?", "and delivery?"]),
        item("part", (1, 0.5)),
        item("link", (1, 1)),
        item("claim", (1, 1)),
        item("else", (1, 1)),
        item("fine", (1, 1)),
    ]
    said = {
        "several": answer("several", 1, 1),
        "part": answer("part", 1, 1),
        "link": answer("link", 0, 1, "the price is of another product"),
        "claim": answer("claim", 0, 1, "promises a refund"),
        "else": answer("else", 0, 1, "in Chinese"),
        "fine": answer("fine"),
    }
    found = calibrated(tmp_path, root, judge, items, a=lambda i, n: said[i])
    assert [(c.kind, c.dimension, c.direction, c.count, c.cases) for c in found.clusters] == [
        ("capability-claim", "accuracy", "strict", 1, ["claim"]),
        ("other", "accuracy", "strict", 1, ["else"]),
        ("product-link", "accuracy", "strict", 1, ["link"]),
        ("missed-intent", "effectiveness", "lenient", 1, ["several"]),
        ("partial-answer", "effectiveness", "lenient", 1, ["part"]),
    ]
    assert found.clusters[0].share == pytest.approx(1 / 3)
    assert found.clusters[0].intents == {"price": 1}
    assert "refund" in found.clusters[0].words


def test_the_source_of_labels_and_the_sets_role_are_said_first(tmp_path: Path, root: Path, judge: Bundle):
    human = calibrated(
        tmp_path, root, judge, [item("i1", (1, 1)), item("i2", (1, 1), role="test", source="agency")], a=None
    )
    assert calibration_lines(human)[0].startswith(
        "Labels: agency 1, team 1. Role: dev set (1 items) and test set (1 items)."
    )
    assert human.is_human
    made = calibrated(tmp_path, root, judge, [item("i1", (1, 1), source="construction")], a=None)
    assert calibration_lines(made)[1].startswith("These labels are NOT of people")
    assert not made.is_human


def test_judges_stand_on_one_curve_only_on_one_set(tmp_path: Path, root: Path, judge: Bundle):
    items = [item("i1", (1, 1)), item("i2", (0, 0))]
    one = calibrated(tmp_path, root, judge, items, a=None)
    two = calibrated(tmp_path, root, judge, items, b=lambda i, n: answer(i, int(i == "i1"), 1))
    points = curve({"one": one, "two": two}, one.set_digest)
    assert [(p.run, p.accuracy, p.effectiveness) for p in points] == [("one", 0.5, 0.5), ("two", 1, 0.5)]
    other = calibrated(tmp_path, root, judge, [item("i1", (1, 0.5)), item("i2", (0, 0))], c=None)
    with pytest.raises(UsageError, match="three judged another set"):
        curve({"one": one, "three": other}, one.set_digest)


def test_the_constructed_set_is_the_same_each_time_and_says_what_it_is(root: Path, host: Bundle):
    first = asyncio.run(constructed(root, host, n=24))
    assert first == asyncio.run(constructed(root, host, n=24))
    assert {each.source for each in first} == {"construction"} and {each.role for each in first} == {"dev"}
    by_flaw: dict[str | None, list[CalibrationItem]] = {}
    for number, each in enumerate(first):
        by_flaw.setdefault(ANSWERED_BY[number % len(ANSWERED_BY)], []).append(each)
    for flaw in (None, "redundant-call", "wrong-skill"):
        assert all(each.labels[0].accuracy == 1 and each.labels[0].effectiveness == 1 for each in by_flaw[flaw])
    wrong = [each for each in by_flaw["ungrounded-number"] if each.labels[0].accuracy == 0]
    assert wrong and all(each.labels[0].reason for each in wrong)
    assert label_set(first, {}).digest == label_set(first, {}).digest


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "i1"}', "labels.jsonl:2: not a calibration item"),
        ("[1]", "labels.jsonl:2: not a calibration item"),
        ("{", "labels.jsonl:2"),
        ('{"format": "harnessctl/calibration.v1", "id": "x", "source": "t", "role": "dev", "labels": [{"effectiveness": 0.7}]}', "labels.jsonl:2: effectiveness 0.7; allowed 0, 0.5, 1"),
        ('{"format": "harnessctl/calibration.v1", "id": "x", "source": "t", "role": "dev", "labels": [{"accuracy": 7}]}', "labels.jsonl:2: not a calibration item"),
        ('{"format": "harnessctl/calibration.v1", "id": "x", "source": "t", "role": "dev", "labels": [{"accuracy": NaN}]}', "labels.jsonl:2"),
        ('{"format": "harnessctl/calibration.v1", "id": "x", "source": "t", "role": "train", "labels": [{"accuracy": 1}]}', "labels.jsonl:2: not a calibration item"),
        ('{"format": "harnessctl/calibration.v2", "id": "x", "source": "t", "role": "dev", "labels": [{"accuracy": 1}]}', "labels.jsonl:2: not a calibration item"),
        ('{"format": "harnessctl/calibration.v1", "id": "x", "source": "t", "role": "dev", "labels": []}', "labels.jsonl:2: not a calibration item"),
    ],
)  # fmt: skip
def test_a_bad_line_of_labels_is_told_with_its_place(tmp_path: Path, line: str, said: str):
    path = tmp_path / "labels.jsonl"
    path.write_bytes(msgspec.json.encode(item("i0", (1, 1))) + b"\n" + line.encode() + b"\n\n")
    with pytest.raises(RecordError) as caught:
        read_items(path)
    assert said in caught.value.message


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def scripts(root: Path, ids: Sequence[str]) -> None:
    lines = [{"match": f"Item {each}", "replies": [{"content": answer(each)}]} for each in ids]
    write_scripts(root, a=lines, b=lines, c=lines)


def test_the_command_on_a_constructed_set(root: Path, capsys: pytest.CaptureFixture[str]):
    scripts(root, [f"stall-0-{n:06d}" for n in range(16)])
    code, out, err = call(capsys, "eval", "judge-calibration", "n=16", "--project", str(root))
    assert code == 0
    assert "against the labels" in out and "Acc: label (rows)" in out.replace("\n", " ")
    assert "NOT of people" in err and "construction 16" in err
    run = (root / "runs" / "latest-judge-calibration").resolve()
    assert "NOT of people" in (run / "report.md").read_text()
    found = read_calibration(run)
    assert (found.items, found.sources, found.panel.coverage) == (16, {"construction": 16}, 1)
    assert found.clusters and {each.direction for each in found.clusters} == {"lenient"}
    record = orjson.loads((run / "run.json").read_bytes())
    assert (record["job"], record["status"], record["counts"]["items"]) == ("judge-calibration", "done", 16)
    assert len((run / "votes.jsonl").read_bytes().splitlines()) == 48

    code, out, err = call(
        capsys, "eval", "judge-calibration", "n=16", f"curve=[{run}]", "--json", "--project", str(root)
    )
    document = orjson.loads(out)
    assert code == 0
    assert [each["accuracy"] for each in document["report"]["curve"]] == [found.agreement["accuracy"].share] * 2
    again = read_calibration(Path(document["run"]))
    assert "Judges on this set" in calibration_tables(again)[-1].title


def test_labels_of_a_run(root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    run = root / "runs" / "r"
    keys = ("faults.timeout=0", "faults.malformed=0", "faults.denied=0", "faults.stale=0", "n=3")
    assert call(capsys, "eval", "live-qa", *keys, "--project", str(root), "--run-dir", str(run))[0] == 0
    ids = [f"stall-0-{n:06d}" for n in range(3)]
    scripts(root, ids)
    path = tmp_path / "labels.jsonl"
    given = [
        CalibrationItem(id=each, labels=[Label(accuracy=1, effectiveness=1)], source="team", role="test")
        for each in [*ids, "stall-9-000000"]
    ]
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in given))
    code, _out, err = call(
        capsys, "eval", "judge-calibration", f"labels={path}", f"replies={run}", "--project", str(root)
    )
    assert code == 0
    assert "Labels: team 3. Role: test set (3 items)." in err
    assert "1 absent (stall-9-000000)" in err
    assert "NOT of people" not in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["live-qa"], 2, "judge-calibration judges judges, and live-qa a policy"),
        (["labels=nowhere.jsonl"], 1, "cannot read nowhere.jsonl"),
        (["judge=reward"], 2, "no judge 'reward'"),
        (["curve=[nowhere]"], 1, "nowhere: no calibration.json there"),
        (["replies=x"], 2, "there are no labels"),
        (["n=0"], 2, "key n"),
        (["policy=oracle"], 2, "no key 'policy'"),
        (["--resume", "x"], 2, "goes on by itself"),
    ],
)
def test_wrong_usage_leaves_no_run(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
):
    scripts(root, [])
    found, out, err = call(capsys, "eval", "judge-calibration", *arguments, "--project", str(root))
    assert (found, out) == (code, "")
    assert said in err
    assert not (root / "runs").exists()


def test_cfg_prints_the_keys(root: Path, capsys: pytest.CaptureFixture[str]):
    code, out, _ = call(capsys, "eval", "judge-calibration", "--cfg", "--project", str(root))
    assert code == 0
    assert ": 482" in out and "judge: panel" in out
