"""An evaluation from scenarios to report: what is written, and that nothing but the keys decides it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from evaluate_jobs import Evaluate, folder_of, job_of
from evaluate_stall import STALL

from harnessctl.compile.revision import compiled
from harnessctl.errors import HarnessctlError, UsageError
from harnessctl.evaluate.config import FaultsConfig
from harnessctl.evaluate.evaluation import check, evaluate, places_left
from harnessctl.evaluate.files import NAMES, path_of, read_records
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.report import markdown
from harnessctl.evaluate.rescoring import rescore
from harnessctl.evaluate.sets import item_sets, set_named
from harnessctl.runs import RunFolder
from harnessctl.storage import read_json_lines


def files(folder: Path) -> dict[str, bytes]:
    return {name: path_of(folder, name).read_bytes() for name in NAMES if path_of(folder, name).exists()}


def test_the_oracle_is_right_in_all(evaluated: Evaluate) -> None:
    folder, report = evaluated(n=120)
    total = report.total
    assert (total.items, total.scored, report.coverage) == (120, 120, 1)
    assert [total.accuracy, total.effectiveness, total.average, total.tool_rationality, total.skill_selection] == [
        1
    ] * 5
    assert set(report.intents) == {"price", "stock", "hello", "reserve", "spam", "which"}
    assert set(report.stops) == {"replied", "silent"}
    assert report.faulted == report.recovered > 10
    assert (folder / "report.md").read_text() == markdown(report)


def test_records_belong_together(evaluated: Evaluate) -> None:
    folder, _ = evaluated()
    scenarios, scores = list(read_records(folder, "scenarios")), list(read_records(folder, "scores"))
    trajectories = [document for _, document in read_json_lines(path_of(folder, "trajectories"))]
    assert [s.request.id for s in scenarios] == [s.id for s in scores] == [t["id"] for t in trajectories]
    assert not path_of(folder, "variations").exists()
    wanting = [s.request.id for s in scenarios if s.gold.end_state]
    assert [tables.id for tables in read_records(folder, "end_states")] == wanting
    assert wanting
    assert {score.scorer for score in scores} == {"rules"}
    assert all(score.variant is None for score in scores)


def test_no_time_passes(evaluated: Evaluate) -> None:
    folder, _ = evaluated(n=10)
    for _, document in read_json_lines(path_of(folder, "trajectories")):
        assert document["started"] == "2000-01-01T00:00:00+00:00"
        assert document["took_s"] == 0
        assert all(hook["took_s"] == 0 for hook in document.get("hooks", []))


@pytest.mark.parametrize("suite", ["live-qa", "variant-qa"])
def test_one_process_and_two_give_the_same_files(evaluated: Evaluate, suite: str) -> None:
    one, _ = evaluated("one", suite=suite)
    two, _ = evaluated("two", suite=suite, workers=2)
    assert files(one) == files(two)


def test_the_seed_decides(evaluated: Evaluate) -> None:
    one, _ = evaluated("one", n=10)
    other, _ = evaluated("other", n=10, seed=1)
    more, _ = evaluated("more", n=20, limit=15)
    assert files(one)["scenarios"] != files(other)["scenarios"]
    assert len(files(more)["scores"].splitlines()) == 15
    assert files(more)["trajectories"].startswith(files(one)["trajectories"])


def test_variants_have_their_records(evaluated: Evaluate) -> None:
    folder, report = evaluated(suite="variant-qa", n=30)
    assert report.total.average == 1
    variations = list(read_records(folder, "variations"))
    scores = list(read_records(folder, "scores"))
    assert [score.variant for score in scores] == [variation.number for variation in variations] == list(range(30))
    assert [score.bundle for score in scores] == [variation.variant for variation in variations]
    assert len({score.bundle for score in scores}) > 25


def test_a_few_variants_for_all(evaluated: Evaluate) -> None:
    folder, report = evaluated(suite="variant-qa", n=30, variants=3)
    assert report.total.average == 1
    assert len({score.bundle for score in read_records(folder, "scores")}) <= 3


def test_an_unknown_envelope_and_flaw_are_named(job: Callable[..., Job], evaluated: Evaluate) -> None:
    with pytest.raises(UsageError, match="no envelope 'papers'"):
        evaluated(suite="variant-qa", envelope="papers", n=1)
    with pytest.raises(UsageError, match="no flaw 'nonsuch'"):
        check(job(flaw="nonsuch"))
    with pytest.raises(UsageError, match="degrades the oracle"):
        check(job(flaw="wrong-skill", policy="scripted"))
    with pytest.raises(UsageError, match="one request at a time"):
        check(job(policy="local", workers=2))
    with pytest.raises(UsageError, match="no set of items 'live'"):
        set_named("live")
    assert {"live-qa", "variant-qa"} <= set(item_sets())


def test_replies_in_order_are_for_one_worker(job: Callable[..., Job], tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"content": "Welcome!"}\n')
    check(job(policy="scripted", script=str(script)))
    with pytest.raises(UsageError, match="replies in order"):
        check(job(policy="scripted", script=str(script), workers=2))


def test_the_baseline_loop_has_no_skills_to_score(evaluated: Evaluate) -> None:
    _, report = evaluated(loop="react", n=20)
    assert report.total.skill_selection is None
    assert (report.total.scored, report.total.accuracy) == (20, 1)


BREAKING_OFF = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from evaluate_jobs import folder_of, job_of
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.evaluation import evaluate

if __name__ == "__main__":
    root = Path({root!r})
    job = job_of(root, compiled(root, None), workers={workers})
    done = []

    def on_done(outcome):
        done.append(outcome.id)
        if len(done) == 17:
            os.kill(os.getpid(), signal.SIGKILL)

    with job.setting() as setting:
        evaluate(job, folder_of(job, Path({folder!r})), setting, on_done=on_done)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_was_killed_goes_on(evaluated: Evaluate, stall: Path, tmp_path: Path, workers: int) -> None:
    folder = tmp_path / "killed"
    script = tmp_path / "breaking_off.py"
    script.write_text(
        BREAKING_OFF.format(tests=str(Path(__file__).parent), root=str(stall), folder=str(folder), workers=workers)
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, env=environment, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert len(path_of(folder, "scores").read_bytes().splitlines()) == 17
    with open(path_of(folder, "scenarios"), "ab") as torn:  # what a kill between two files, and within a line, leaves
        torn.write(b'{"id": "stall-0-000017"}\n')
    with open(path_of(folder, "scores"), "ab") as torn:
        torn.write(b'{"id": "stall-0-0000')
    done: list[Any] = []
    evaluated(folder=RunFolder.open(folder), on_done=done.append)
    assert len(done) == 40 - 17
    whole, _ = evaluated("whole")
    assert files(folder) == files(whole)


def test_a_run_of_other_items_is_not_gone_on_with(evaluated: Evaluate) -> None:
    folder, _ = evaluated(n=5)
    with pytest.raises(UsageError, match="not of this suite: stall-0-000000"):
        evaluated(folder=RunFolder.open(folder), seed=9)


def test_rescoring_changes_nothing(evaluated: Evaluate) -> None:
    folder, _ = evaluated()
    before = files(folder)
    assert rescore(folder, writes=["reserve"]) == 0
    assert files(folder) == before


def test_rescoring_mends_scores(evaluated: Evaluate) -> None:
    folder, _ = evaluated(n=5)
    before = files(folder)
    documents = [document | {"accuracy": 0.0} for _, document in read_json_lines(path_of(folder, "scores"))]
    path_of(folder, "scores").write_bytes(b"".join(orjson.dumps(d) + b"\n" for d in documents))
    assert rescore(folder, writes=["reserve"]) == 5
    assert files(folder) == before


def test_rescoring_needs_records(tmp_path: Path) -> None:
    with pytest.raises(HarnessctlError, match="no scenarios are recorded"):
        rescore(tmp_path)


def test_a_model_that_fails_has_no_score(evaluated: Evaluate, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"replies": [{"error": {"message": "out of order", "retryable": false, "times": 1000}}]}\n')
    folder, report = evaluated(policy="scripted", script=str(script), n=6)
    assert report.stops == {"model_error": 6}
    assert (report.total.scored, report.total.average, report.coverage) == (0, None, 0)
    assert "| total | 6 | - | - | - | - | - |" in (folder / "report.md").read_text()


def test_a_scripted_policy_is_scored(evaluated: Evaluate, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    calls = [{"name": "load_skill", "arguments": {"skill": "chat"}}]
    replies = [{"tool_calls": calls}, {"content": "Welcome, have a look around!"}]
    script.write_bytes(orjson.dumps({"replies": replies}) + b"\n")
    one, report = evaluated("one", policy="scripted", script=str(script))
    assert report.intents["hello"].average == 1
    assert report.intents["hello"].skill_selection == 1
    assert report.intents["price"].effectiveness == 0
    assert report.intents["price"].tool_rationality == 0
    assert report.intents["spam"].accuracy == 0
    two, _ = evaluated("two", policy="scripted", script=str(script), workers=2)
    assert files(one) == files(two)


@pytest.mark.parametrize("name", ["scenarios", "trajectories", "variations"])
@pytest.mark.parametrize("kept", [0, 4])
def test_rescoring_replaces_nothing_where_lines_are_missing(evaluated: Evaluate, name: str, kept: int) -> None:
    folder, _ = evaluated(n=5, suite="variant-qa")
    path = path_of(folder, name)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))
    before = files(folder)
    with pytest.raises(
        HarnessctlError,
        match="no scenarios are recorded" if (name, kept) == ("scenarios", 0) else f"{name}.jsonl: ends after {kept}",
    ):
        rescore(folder, writes=["reserve"])
    assert files(folder) == before


def test_rescoring_makes_scores_that_are_gone(evaluated: Evaluate) -> None:
    folder, _ = evaluated(n=5, suite="variant-qa")
    before = files(folder)
    path_of(folder, "scores").unlink()
    assert rescore(folder, writes=["reserve"]) == 5
    assert files(folder) == before


def test_a_report_says_why_items_have_no_score(evaluated: Evaluate, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"content": "Welcome!"}\n')
    _, report = evaluated(n=3, policy="scripted", script=str(script))
    said = [why for why, _ in report.unscored]
    assert sum(count for _, count in report.unscored) == report.total.items - report.total.scored
    assert all(f": {why}" in markdown(report) for why in said)
    assert not [reason for _, reason, _ in report.reasons if reason in said]


def test_only_what_was_done_is_looked_for(job: Callable[..., Job]) -> None:
    wanted = job(n=10_000_000)
    with wanted.setting() as setting:
        ids = [setting.scenario_id(number) for number in range(6)]
        assert places_left(wanted, setting, []) == range(10_000_000)
        assert places_left(wanted, setting, ids[:3]) == range(3, 10_000_000)
    some = job(n=8)
    with some.setting() as setting:
        assert list(places_left(some, setting, [ids[1], ids[5], ids[4]])) == [0, 2, 3, 6, 7]
        with pytest.raises(UsageError, match="not of this suite: other"):
            places_left(some, setting, [ids[0], "other"])


def test_end_states_are_compared_as_json(tmp_path: Path) -> None:
    """Cells of JSON are what they hold, not their text."""
    row = "{table: reserved, where: {link_id: 1, viewer: nobody}, values: {tags: [a]}}"
    changed = {
        "manifests/worlds/stall.yaml": ("key: [link_id, viewer], ", "key: [link_id, viewer], types: {tags: json}, "),
        "manifests/worlds/stall/reserved.csv": (
            "link_id,viewer\n1,nobody\n",
            'link_id,viewer,tags\n1,nobody,"[""a""]"\n',
        ),
        "manifests/worlds/stall/families/all.yaml": ("end_state: [{", "end_state: [" + row + ", {"),
    }
    for name, text in STALL.items():
        path = tmp_path / "stall" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        old, new = changed.get(name, ("", ""))
        assert old in text
        path.write_text(text.replace(old, new) if old else text)
    root = tmp_path / "stall"
    job = job_of(root, compiled(root, None), n=30, faults=FaultsConfig(timeout=0, malformed=0, denied=0, stale=0))
    with job.setting() as setting:
        report = evaluate(job, folder_of(job, tmp_path / "run"), setting)
    assert report.intents["reserve"].accuracy == 1
