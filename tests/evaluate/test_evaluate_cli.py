"""`harnessctl eval` and `harnessctl rescore` as a person or a script uses them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from harnessctl.cli.main import main
from tests.cli_world.chat_server import Chat, chatting

KEYS = ("faults.timeout=0", "faults.malformed=0", "faults.denied=0", "faults.stale=0")


@pytest.fixture
def project(stall: Path, tmp_path: Path) -> Path:
    """A copy of the stall: runs are kept in it."""
    root = tmp_path / "project"
    shutil.copytree(stall, root, ignore=shutil.ignore_patterns("build", "runs"))
    return root


def call(capsys: pytest.CaptureFixture[str], project: Path, *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments, "--project", str(project)] if arguments[0] == "eval" else list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_suite_is_evaluated(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    code, out, err = call(capsys, project, "eval", "live-qa", "n=12", *KEYS)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "Live-Stream QA (T1): oracle under stall-1.0.0"
    assert "AVG" in out and "total     12   100.0" in out
    assert lines[-1].endswith("report.md")
    assert "live-qa 12/12" in err
    folder = (project / "runs" / "latest-eval").resolve()
    record = orjson.loads((folder / "run.json").read_bytes())
    assert record["status"] == "done"
    assert record["counts"]["items"] == record["counts"]["scored"] == 12
    assert record["policy"] == "oracle"
    assert record["extra"]["writes"] == ["reserve"]
    assert "suite: live-qa" in (folder / "config.yaml").read_text()


def test_json_is_pure(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    code, out, _ = call(capsys, project, "eval", "live-qa", "n=5", "--json")
    document = orjson.loads(out)
    assert code == 0
    assert document["status"] == "done"
    assert document["report"]["total"]["average"] == 1.0
    assert document["report"]["suite"] == "live-qa"


def test_two_suites(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    code, out, _ = call(capsys, project, "eval", "live-qa", "variant-qa", "n=4", "--json", *KEYS)
    assert code == 0
    assert [document["report"]["suite"] for document in orjson.loads(out)] == ["live-qa", "variant-qa"]


def test_a_sweep(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    code, out, _ = call(capsys, project, "eval", "live-qa", "n=6", "-m", "flaw=null,wrong-skill", "--json", *KEYS)
    assert code == 0
    skill = [document["report"]["total"]["skill_selection"] for document in orjson.loads(out)]
    assert skill[0] == 1 > skill[1]
    assert [document["report"]["policy"] for document in orjson.loads(out)] == ["oracle", "oracle:wrong-skill"]


def test_a_finished_run_is_resumed_with_nothing_to_do(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    call(capsys, project, "eval", "live-qa", "n=6", "--run-dir", str(project / "r"))
    before = (project / "r" / "trajectories.jsonl").read_bytes()
    code, _, err = call(capsys, project, "eval", "--resume", str(project / "r"))
    assert code == 0
    assert "6 of 6 items are done" in err
    assert (project / "r" / "trajectories.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eval"], "which suite?"),
        (["eval", "nonsuch"], "no suite 'nonsuch'"),
        (["eval", "live-qa", "nn=3"], "no key 'nn'"),
        (["eval", "live-qa", "flaw_rate=2"], "flaw_rate"),
        (["eval", "live-qa", "n=0"], "key n"),
        (["eval", "live-qa", "flaw=clumsy"], "no flaw 'clumsy'"),
        (["eval", "variant-qa", "envelope=bare", "n=1"], "no envelope 'bare'"),
        (["eval", "live-qa", "suite=variant-qa"], "the suite is given twice"),
        (["eval", "live-qa", "=1"], "'=1' is not KEY=VALUE"),
        (["eval", "live-qa", "policy=gpt"], "no choice 'gpt'; there are local, openai, oracle, scripted"),
        (["eval", "live-qa", "faults.timeout=0.7", "faults.denied=0.7"], "come to 1.4"),
        (["eval", "live-qa", "variant-qa", "--run-dir", "x"], "several runs make a folder each"),
    ],
)
def test_wrong_usage(
    capsys: pytest.CaptureFixture[str], project: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(project)
    code, out, err = call(capsys, project, *arguments)
    assert code == 2
    assert said in err
    assert out == ""


def test_other_keys_are_not_resumed_with(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    call(capsys, project, "eval", "live-qa", "n=3", "--run-dir", str(project / "r"))
    code, _, err = call(capsys, project, "eval", "live-qa", "n=4", "--resume", str(project / "r"))
    assert code == 2
    assert "made with another config: n" in err


def test_rescore(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    call(capsys, project, "eval", "live-qa", "n=6", "--run-dir", str(project / "r"))
    scores = (project / "r" / "scores.jsonl").read_bytes()
    shutil.rmtree(project / "manifests")  # nothing but the run's folder is needed
    code, out, err = call(capsys, project, "rescore", str(project / "r"), "--json")
    assert code == 0
    assert orjson.loads(out)["changed"] == 0
    assert "0 scores changed" in err
    assert (project / "r" / "scores.jsonl").read_bytes() == scores
    assert call(capsys, project, "rescore", str(project))[0] == 1


def test_comments_have_no_gold_for_the_oracle(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "in.jsonl").write_text('{"id": "1", "text": "hello"}\n')
    code = main(["run", "--project", str(project), "policy=oracle", "--input", str(project / "in.jsonl")])
    assert code == 2
    assert "policy=oracle answers scenarios" in capsys.readouterr().err
    assert not (project / "runs").exists()


def test_workers_may_change_when_a_run_goes_on(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    call(capsys, project, "eval", "live-qa", "n=3", "seed=5", "--run-dir", str(project / "r"))
    code, _, err = call(capsys, project, "eval", "--resume", str(project / "r"), "workers=2")
    assert (code, "3 of 3 items are done" in err) == (0, True)


def test_nothing_is_begun_where_a_later_run_has_a_wrong_key(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    code, out, err = call(capsys, project, "eval", "live-qa", "n=2", "-m", "seed=0,-1")
    assert (code, out) == (2, "")
    assert "key seed" in err
    assert not (project / "runs").exists()


def test_a_suite_that_is_named_twice_is_one(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    code, out, _ = call(capsys, project, "eval", "live-qa", "live-qa", "n=2", "--json")
    assert (code, orjson.loads(out)["counts"]["items"]) == (0, 2)


def test_a_run_of_another_job_is_named(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    assert main(["augment", "--project", str(project), "n=1", "envelope=none", "--run-dir", str(project / "a")]) == 0
    for arguments in (["eval", "--resume", str(project / "a")], ["rescore", str(project / "a")]):
        code, _, err = call(capsys, project, *arguments)
        assert code == 2
        assert "is a run of `harnessctl augment`" in err


def test_a_model_that_never_answers_is_a_failure_with_its_cause(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    keys = (
        "policy=openai",
        "model=openai",
        "model.name=m",
        "model.base_url=http://127.0.0.1:9/v1",
        "limits.model_retries=0",
    )
    code, _, err = call(capsys, project, "eval", "live-qa", "n=2", *keys)
    assert code == 1
    assert "no score for 2 items: the request ended `model_error`: cannot connect" in err
    report = (project / "runs" / "latest-eval" / "report.md").read_text()
    assert "- No score for 2: the request ended `model_error`" in report
    assert "what cost something" not in report


@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_envelope_is_named_and_leaves_no_run(
    capsys: pytest.CaptureFixture[str], project: Path, workers: int
) -> None:
    path = project / "manifests" / "envelopes" / "torn.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("a: [")
    code, _, err = call(capsys, project, "eval", "variant-qa", "n=2", "envelope=torn", f"workers={workers}")
    assert code == 1
    assert "torn.yaml" in err and "error[yaml-bracket]" in err
    assert not (project / "runs").exists()


def test_what_no_model_answered_at_the_end_is_asked_again(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    script = project / "script.jsonl"
    keys = ("live-qa", "n=20", "policy=scripted", f"script={script}")
    script.write_text('{"content": "Hi."}\n' * 12)
    code, _, err = call(capsys, project, "eval", *keys, "--run-dir", str(project / "r"))
    assert code == 0
    assert "the script has run out" in err
    script.write_text('{"content": "Hi."}\n' * 500)
    code, _, err = call(capsys, project, "eval", "--resume", str(project / "r"))
    assert code == 0
    assert "at the end had no answer and will be asked again" in err
    call(capsys, project, "eval", *keys, "--run-dir", str(project / "unbroken"))
    for name in ("scenarios", "trajectories", "scores"):
        resumed, unbroken = ((project / run / f"{name}.jsonl").read_bytes() for run in ("r", "unbroken"))
        assert resumed == unbroken
        assert resumed.count(b"\n") == 20


def test_an_altered_record_is_named(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    call(capsys, project, "eval", "live-qa", "n=2", "--run-dir", str(project / "r"))
    path = project / "r" / "run.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"extra": {"writes": 7}}))
    code, _, err = call(capsys, project, "rescore", str(project / "r"))
    assert code == 1
    assert "run.json: extra: " in err


def scripted(project: Path, replies: int) -> tuple[str, ...]:
    script = project / "script.jsonl"
    script.write_text('{"content": "Hi."}\n' * replies)
    return ("live-qa", "n=20", "policy=scripted", f"script={script}", *KEYS)


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_what_had_no_answer_is_asked_again_where_that_is_wanted(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    keys = (*scripted(project, 12), "--run-dir", str(project / "r"))
    code, _, err = call(capsys, project, "eval", *keys, "--retry-on-error", "2")
    assert code == 0 and "had no answer and will be asked again: " in err and "script has run out" in err
    assert "retries: 2" in (project / "r" / "config.yaml").read_text()
    assert lines_of(project / "r" / "scores.jsonl") == 20


def test_the_first_item_without_an_answer_stops_the_run_where_that_is_wanted(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    keys = (*scripted(project, 12), "--run-dir", str(project / "r"))
    code, _, err = call(capsys, project, "eval", *keys, "--fail-on-error")
    assert code == 1 and "has no answer: " in err and f"eval --resume {project / 'r'}" in err
    assert lines_of(project / "r" / "scores.jsonl") < 20
    scripted(project, 500)
    code, _, _ = call(capsys, project, "eval", "--resume", str(project / "r"))
    assert code == 0 and lines_of(project / "r" / "scores.jsonl") == 20


@pytest.fixture
def chat() -> Iterator[Chat]:
    with chatting(lambda body: "Hello and welcome!", usage={"prompt_tokens": 100, "completion_tokens": 10}) as server:
        yield server


def test_answers_of_an_earlier_run_are_taken_where_that_is_wanted(
    capsys: pytest.CaptureFixture[str], project: Path, chat: Chat
) -> None:
    model = ("policy=openai", "model=openai", "model.name=m", f"model.base_url={chat.url}", "model.stream=false")
    keys = ("eval", "live-qa", "n=3", "repeats=2", *model, *KEYS)
    call(capsys, project, *keys, "cache=true", "--run-dir", str(project / "first"))
    asked = len(chat.asked)
    assert asked >= 6
    code, _, _ = call(capsys, project, *keys, "cache=true", "workers=3", "--run-dir", str(project / "second"))
    assert code == 0 and len(chat.asked) == asked
    record = orjson.loads((project / "second" / "run.json").read_bytes())
    assert record["counts"]["cached"] == record["counts"]["items"] == 6
    scores = [sorted((project / run / "scores.jsonl").read_bytes().splitlines()) for run in ("first", "second")]
    assert scores[0] == scores[1]
    call(capsys, project, *keys, "cache=true", "sampling.temperature=0.5")
    assert len(chat.asked) == 2 * asked
    call(capsys, project, *keys)
    assert len(chat.asked) == 3 * asked


def test_a_run_says_what_it_took_and_cost(capsys: pytest.CaptureFixture[str], project: Path, chat: Chat) -> None:
    model = ("policy=openai", "model=openai", "model.name=m", f"model.base_url={chat.url}", "model.stream=false")
    code, out, _ = call(
        capsys, project, "eval", "live-qa", "n=2", *model, "model.price={prompt: 10, completion: 100}", "--json", *KEYS
    )
    assert code == 0
    calls = len(chat.asked)
    usage = orjson.loads(out)["report"]["usage"]
    assert (usage["calls"], usage["prompt_tokens"], usage["completion_tokens"]) == (calls, 100 * calls, 10 * calls)
    assert usage["cost"] == pytest.approx(calls * (100 * 10 + 10 * 100) / 1e6)
    assert f"cost {usage['cost']:.4f}" in (project / "runs" / "latest-eval" / "report.md").read_text()


NIGHTLY = """apiVersion: harnessctl/v1
kind: Suite
name: nightly
set: variant-qa
n: 4
metrics: [skill_selection, average]
gate: {least: {skill_selection: 50}}
"""


def test_a_suite_of_ones_own_with_its_columns_and_its_gate(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    folder = project / "manifests" / "suites"
    folder.mkdir(parents=True)
    (folder / "nightly.yaml").write_text(NIGHTLY)
    code, out, err = call(capsys, project, "eval", "nightly", *KEYS)
    assert code == 0 and "gate passed" in err
    assert "Skill" in out and "AVG" in out and "Acc" not in out
    assert out.index("Skill") < out.index("AVG")
    # A missed gate stops no other suite, and is the exit code all the same.
    code, out, _ = call(capsys, project, "eval", "nightly", "live-qa", "n=3", "flaw=wrong-skill", "--json", *KEYS)
    done = orjson.loads(out)
    assert code == 3 and [one["report"]["suite"] for one in done] == ["nightly", "live-qa"]
    assert done[0]["gate"]["missed"][0]["metric"] == "skill_selection" and done[1]["gate"] is None
    code, _, err = call(capsys, project, "eval", "nightly", "metrics=[averag]")
    assert code == 2 and "no metric 'averag'" in err
