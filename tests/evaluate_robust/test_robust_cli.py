"""`harnessctl sets build` and `harnessctl eval` of built sets, as a person or a script uses them."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from harnessctl.cli.main import main


def call(capsys: pytest.CaptureFixture[str], project: Path, *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([*arguments, "--project", str(project)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_set_is_built_answered_and_scored_again(
    capsys: pytest.CaptureFixture[str], copied_project: Path, tmp_path: Path
) -> None:
    out = tmp_path / "set.jsonl"
    code, said, err = call(capsys, copied_project, "sets", "build", "tool-robust", "harness=mini", "n=6", f"out={out}")
    assert (code, said.strip()) == (0, str(out))
    assert "tool-robust: 6 items for mini, seed 0" in err
    assert "building tool-robust 6/6" in err
    assert "rejected: " in err and "distractors: " in err
    keys = ("eval", "tool-robust", "harness=mini", f"set={out}", "--run-dir", str(tmp_path / "run"))
    code, said, err = call(capsys, copied_project, *keys)
    assert code == 0
    assert said.splitlines()[0] == "Tool Robustness (T3): oracle under mini-1.0.0"
    assert said.splitlines()[2].split() == ["intent", "n", "ACQ", "RC", "TC", "AVG"]
    assert "total" in said and "100.0   100.0   100.0   100.0" in said
    record = orjson.loads((tmp_path / "run" / "run.json").read_bytes())
    assert record["extra"]["asked"] == "tool-robust"
    assert record["extra"]["set"] == orjson.loads((tmp_path / "set.card.json").read_bytes())["digest"]
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| level | n | ACQ | RC | TC | AVG |" in report
    assert "AVG the share of an item's rubrics that were passed" in report
    out.unlink()  # scoring needs the run's folder and nothing else
    before = (tmp_path / "run" / "scores.jsonl").read_bytes()
    assert main(["rescore", str(tmp_path / "run")]) == 0
    assert (tmp_path / "run" / "scores.jsonl").read_bytes() == before


def test_a_run_goes_on_with_its_set_and_with_no_other(
    capsys: pytest.CaptureFixture[str], copied_project: Path, tmp_path: Path
) -> None:
    out, run = tmp_path / "set.jsonl", tmp_path / "run"
    call(capsys, copied_project, "sets", "build", "prompt-robust", "harness=mini", "n=5", f"out={out}")
    keys = ("eval", "prompt-robust", "harness=mini", f"set={out}")
    assert call(capsys, copied_project, *keys, "--run-dir", str(run))[0] == 0
    whole = (run / "trajectories.jsonl").read_bytes()
    scores = (run / "scores.jsonl").read_bytes().splitlines(keepends=True)
    (run / "scores.jsonl").write_bytes(b"".join(scores[:2]))
    code, _, err = call(capsys, copied_project, "eval", "--resume", str(run))
    assert code == 0 and "2 of 5 items are done" in err
    assert (run / "trajectories.jsonl").read_bytes() == whole
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[:4]))
    code, _, err = call(capsys, copied_project, "eval", "--resume", str(run))
    assert code == 2 and "was made with another set" in err


def test_a_built_run_goes_on_too(capsys: pytest.CaptureFixture[str], copied_project: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    keys = ("eval", "prompt-robust", "harness=mini", "n=4", "--run-dir", str(run))
    assert call(capsys, copied_project, *keys)[0] == 0
    whole = (run / "trajectories.jsonl").read_bytes()
    scores = (run / "scores.jsonl").read_bytes().splitlines(keepends=True)
    (run / "scores.jsonl").write_bytes(scores[0])
    assert call(capsys, copied_project, "eval", "--resume", str(run))[0] == 0
    assert (run / "trajectories.jsonl").read_bytes() == whole
    assert b"".join(scores) == (run / "scores.jsonl").read_bytes()


def test_the_card_as_json(capsys: pytest.CaptureFixture[str], copied_project: Path) -> None:
    code, said, _ = call(capsys, copied_project, "sets", "build", "prompt-robust", "harness=mini", "n=3", "--json")
    done = orjson.loads(said)
    assert code == 0
    assert done["out"].endswith("build/sets/prompt-robust-mini-0.jsonl")
    assert (done["card"]["items"], done["card"]["set"]) == (3, "prompt-robust")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sets", "build"], "which set?"),
        (["sets", "build", "live-qa"], "live-qa is drawn from the world as it is asked, not built"),
        (["sets", "build", "nonsuch"], "nonsuch is no set"),
        (["sets", "build", "tool-robust", "prompt-robust"], "one set at a time"),
        (["sets", "build", "tool-robust", "nn=3"], "no key 'nn'"),
        (["sets", "build", "tool-robust", "n=0"], "key n"),
        (["sets", "build", "tool-robust", "out=set.json"], "out=set.json: a set is a file of JSON Lines"),
        (["sets", "build", "tool-robust", "harness=nonsuch"], "no harness `nonsuch`"),
        (["eval", "tool-robust", "set=absent.jsonl"], "no set at absent.jsonl"),
        (["eval", "tool-robust", "set=nonsuch"], "no set of items 'nonsuch'"),
        (["eval", "tool-robust", "edit=mini", "n=1"], "which tool-robust does not ask"),
    ],
)
def test_what_is_wrong_is_said(
    capsys: pytest.CaptureFixture[str], copied_project: Path, arguments: list[str], said: str
) -> None:
    code, out, err = call(capsys, copied_project, *arguments)
    assert code in (1, 2)
    assert said in err
    assert out == ""
    assert not (copied_project / "runs").exists()


def test_help_names_the_sets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sets", "build", "--help"]) == 0
    said = capsys.readouterr().out
    assert "tool-robust" in said and "edit-compliance" in said
