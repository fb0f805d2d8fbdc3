"""A panel over a run: scores and votes on disk, the rules' beside them, nothing lost or asked twice when it is killed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from judge_project import Judging, answer, jury_of, write_scripts

from harnessctl.bundle.files import Bundle
from harnessctl.cli.main import main
from harnessctl.errors import RecordError, StorageError, UsageError
from harnessctl.evaluate.files import path_of, read_records
from harnessctl.evaluate.judging.panel import open_panel
from harnessctl.evaluate.judging.run_scores import JudgedRun, judge_one, judge_run
from harnessctl.records.score import Score
from harnessctl.records.vote import Vote
from harnessctl.simulate.world import open_world
from harnessctl.storage import read_json_lines
from harnessctl.trajectory import read_trajectories

IDS = [f"stall-0-{n:06d}" for n in range(6)]


def judge_folder(folder: Path, root: Path, bundle: Bundle, models: dict[str, Any], **options: Any) -> JudgedRun:
    given: dict[str, Any] = {"workers": 3, "world": None, "writes": ["reserve"]} | options
    return asyncio.run(judge_run(folder, root, jury_of(bundle, *models), models=models, **given))


def panel_of_three(**said: Callable[[str, int], Any]) -> dict[str, Any]:
    return {name: Judging(said.get(name)) for name in ("a", "b", "c")}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


def test_a_panel_scores_a_run_and_keeps_the_rules_scores(root: Path, judge: Bundle, answered: Callable[..., Path]):
    folder = answered()
    before = files(folder)
    models = panel_of_three(
        a=lambda item, n: answer(item, 0, 0, "that price is wrong") if item == IDS[1] else answer(item),
        b=lambda item, n: answer(item, 0, 0.5, "no such price") if item == IDS[1] else answer(item),
    )
    done = judge_folder(folder, root, judge, models)
    scores: list[Score] = list(read_records(folder, "scores"))
    assert [(s.accuracy, s.effectiveness) for s in scores] == [(1, 1), (0, 0.5), (1, 1), (1, 1), (1, 1), (1, 1)]
    assert scores[1].reasons == {
        "accuracy": ["a: that price is wrong", "b: no such price"],
        "effectiveness": ["b: no such price"],
    }
    assert {s.scorer for s in scores} == {jury_of(judge, "a", "b", "c").scorer}
    assert (folder / "scores.rules.jsonl").read_bytes() == before["scores.jsonl"]
    assert {s.tool_rationality for s in scores} == {1}
    votes = [msgspec.convert(document, Vote) for _, document in read_json_lines(folder / "votes.jsonl")]
    assert [(v.id, v.voter) for v in votes] == [(item, name) for item in IDS for name in "abc"]
    judgements = [t.id for t in read_trajectories(folder / "judgements.jsonl")]
    assert judgements == [f"judge-{vote.key[:16]}-1" for vote in votes]
    assert done.panel.coverage == 1
    assert done.panel.split == {"accuracy": 1, "effectiveness": 1}
    assert [row.accuracy.share for row in done.panel.voters] == [1, 1, 5 / 6]
    assert done.rules["accuracy"].table["1"] == {"0": 1, "1": 5, "-": 0}
    assert {
        name: data for name, data in files(folder).items() if name in ("scenarios.jsonl", "trajectories.jsonl")
    } == {name: before[name] for name in ("scenarios.jsonl", "trajectories.jsonl")}


def test_judging_again_asks_nothing_and_writes_the_same(root: Path, judge: Bundle, answered: Callable[..., Path]):
    folder = answered()
    judge_folder(folder, root, judge, panel_of_three(), workers=5)
    before = files(folder) | {"judging.json": (folder / "judging.json").read_bytes()}
    models = panel_of_three()
    judge_folder(folder, root, judge, models, workers=1)
    assert all(model.requests == [] for model in models.values())
    assert files(folder) | {"judging.json": (folder / "judging.json").read_bytes()} == before


def test_a_request_that_failed_by_itself_is_not_judged(
    root: Path, judge: Bundle, answered: Callable[..., Path], tmp_path: Path
):
    script = tmp_path / "script.jsonl"
    script.write_text(
        '{"replies": [{"tool_calls": [{"name": "load_skill", "arguments": {"skill": "chat"}}]}, {"content": "Hi."}], "match": "hello"}\n'
    )
    folder = answered(policy="scripted", script=str(script))
    stops = [t.stop for t in read_trajectories(path_of(folder, "trajectories"))]
    models = panel_of_three()
    done = judge_folder(folder, root, judge, models)
    asked = [item for item, stop in zip(IDS, stops, strict=True) if stop != "model_error"]
    assert 0 < len(asked) < 6
    assert len(models["a"].requests) == len(asked)
    assert done.panel.unasked == 6 - len(asked)
    scores: list[Score] = list(read_records(folder, "scores"))
    assert [s.accuracy is None for s in scores] == [stop == "model_error" for stop in stops]
    assert all("model_error" in s.reasons["accuracy"][0] for s in scores if s.accuracy is None)


def test_a_pass_that_is_broken_off_leaves_the_old_scores_and_its_votes(
    root: Path, judge: Bundle, answered: Callable[..., Path]
):
    folder = answered()
    before = files(folder)
    told: list[str] = []

    def on_vote(vote: Vote) -> None:
        told.append(vote.id)
        if len(told) == 7:
            raise StorageError("the disk is full")

    with pytest.raises(StorageError):
        judge_folder(folder, root, judge, panel_of_three(), workers=2, on_vote=on_vote)
    assert files(folder) == before
    models = panel_of_three()
    judge_folder(folder, root, judge, models)
    assert sum(len(model.requests) for model in models.values()) <= 18 - 7


CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from judge_project import Judging, jury_of
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.judging.run_scores import judge_run
root, folder, last = Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
asked = open(sys.argv[5], "a")
class Told(Judging):
    async def complete(self, request):
        reply = await super().complete(request)
        asked.write(self.name + "\\n"); asked.flush()
        return reply
models = {name: Told(name=name) for name in "abc"}
told = 0
def on_vote(vote):
    global told
    told += 1
    if told == last:
        os.kill(os.getpid(), signal.SIGKILL)
bundle = compiled(root, "stall-judge")
asyncio.run(judge_run(folder, root, jury_of(bundle, *models), world=None, workers=3, models=models, writes=["reserve"], on_vote=on_vote))
"""


def test_kill_9_and_again_gives_the_same_and_asks_no_vote_twice(
    root: Path, judge: Bundle, answered: Callable[..., Path], tmp_path: Path
):
    folder, unbroken = answered("killed"), answered("unbroken")
    asked = tmp_path / "asked.txt"
    for last, code in ((5, -signal.SIGKILL), (4, -signal.SIGKILL), (99, 0)):
        command = [
            sys.executable,
            "-c",
            CHILD,
            str(Path(__file__).parent),
            str(root),
            str(folder),
            str(last),
            str(asked),
        ]
        assert subprocess.run(command, timeout=60).returncode == code
    count = len(asked.read_text().split())
    assert 18 <= count <= 18 + 2 * 3  # what was under way when it was killed may be asked again, and nothing else
    path = root / "build" / "ballots"
    path.rename(tmp_path / "kept")
    judge_folder(unbroken, root, judge, {name: Judging(name=name) for name in "abc"})
    for name in ("scores.jsonl", "votes.jsonl", "scores.rules.jsonl"):
        assert (folder / name).read_bytes() == (unbroken / name).read_bytes()


def test_other_tables_are_refused(root: Path, judge: Bundle, answered: Callable[..., Path]):
    folder = answered()
    table = root / "manifests" / "worlds" / "stall" / "products.csv"
    table.write_text(table.read_text().replace("1,tea,18,40", "1,tea,19,40"))
    said = r"was answered with tables [0-9a-f]{12}, and stall is [0-9a-f]{12} now"
    manifest = root / "manifests" / "worlds" / "stall.yaml"
    with open_world(manifest, cache=root / "build" / "worlds") as world, pytest.raises(UsageError, match=said):
        judge_folder(folder, root, judge, panel_of_three(), world=world)


def test_a_reward_judge_is_a_panel_of_one(root: Path, judge: Bundle, answered: Callable[..., Path]):
    folder = answered(n=2)
    trajectory = next(iter(read_trajectories(path_of(folder, "trajectories"))))
    scenario = next(iter(read_records(folder, "scenarios")))
    rules = next(iter(read_records(folder, "scores")))

    async def main_() -> Score:
        jury = jury_of(judge, "a")
        models: Any = {"a": Judging(lambda item, n: answer(item, 0, 0.5, "late"))}
        async with open_panel(root, jury, world=None, models=models) as panel:
            return await judge_one(panel, trajectory, scenario, rules)

    score = asyncio.run(main_())
    assert (score.accuracy, score.effectiveness, score.tool_rationality) == (0, 0.5, 1)


def scripts(root: Path, wrong: str = "") -> None:
    """Voters a and b say 1 and 1 of every item, but 0 and 0 of `wrong`; c talks prose."""

    def lines() -> list[dict[str, Any]]:
        return [
            {"match": f"Item {item}", "replies": [{"content": answer(item, int(item != wrong), int(item != wrong))}]}
            for item in IDS
        ]

    write_scripts(root, a=lines(), b=lines(), c=[{"replies": [{"content": "fine!"}] * 40}])


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


KEYS = ("n=6", "faults.timeout=0", "faults.malformed=0", "faults.denied=0", "faults.stale=0")


def test_eval_and_rescore_by_a_panel_and_back(root: Path, capsys: pytest.CaptureFixture[str]):
    scripts(root, wrong=IDS[2])
    run = root / "runs" / "r"
    code, out, err = call(
        capsys, "eval", "live-qa", "judge=panel", *KEYS, "--project", str(root), "--run-dir", str(run)
    )
    assert code == 0
    assert "The panel and the rules on the same items" in out
    assert "No score of c: prose 6." in err
    text = (run / "judging.md").read_text()
    assert "it sees the reply and what the host was shown, no gold" in text
    assert "| c | 0/6 |" in text
    assert "Acc and Eff are those of panel@" in (run / "report.md").read_text()
    judged = (run / "scores.jsonl").read_bytes()
    record = orjson.loads((run / "run.json").read_bytes())
    assert record["status"] == "done"

    code, out, err = call(capsys, "rescore", str(run), "--json")
    document = orjson.loads(out)
    assert (code, document["changed"], document.get("judging")) == (0, 6, None)
    assert not (run / "judging.md").exists()
    assert {s.scorer for s in read_records(run, "scores")} == {"rules"}

    code, out, err = call(capsys, "rescore", str(run), "judge=panel", "workers=2", "--json")
    document = orjson.loads(out)
    assert (code, document["changed"]) == (0, 6)
    assert document["judging"]["panel"]["voters"][0]["voter"] == "a"
    assert document["report"]["total"]["accuracy"] == pytest.approx(5 / 6)
    assert (run / "scores.jsonl").read_bytes() == judged


def test_a_run_that_was_judged_goes_on_and_has_one_scorer(root: Path, capsys: pytest.CaptureFixture[str]):
    scripts(root)
    run = root / "runs" / "r"
    call(capsys, "eval", "live-qa", *KEYS, "--project", str(root), "--run-dir", str(run))
    for name in ("scores", "scenarios", "trajectories"):
        path = path_of(run, name)
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    call(capsys, "rescore", str(run), "judge=panel")
    assert call(capsys, "eval", "--resume", str(run))[0] == 0
    assert [s.scorer for s in read_records(run, "scores")] == ["rules"] * 6
    assert call(capsys, "eval", "--resume", str(run), "judge=panel")[0] == 0
    assert {s.scorer.partition("@")[0] for s in read_records(run, "scores")} == {"panel"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["judge=jury"], "no choice 'jury'; there are panel, rejection, reward"),
        (["judge=reward"], "no judge 'reward' in manifests/roles.yaml"),
        (["judges=panel"], "no key 'judges'"),
        (["judge=panel", "workers=0"], "key workers"),
        (["panel"], "'panel' is not KEY=VALUE"),
    ],
)
def test_wrong_usage(
    root: Path, answered: Callable[..., Path], capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
):
    folder = answered(n=2)
    before = files(folder)
    write_config(folder)
    code, out, err = call(capsys, "rescore", str(folder), *arguments, "--project", str(root))
    assert (code, out) == (2, "")
    assert said in err
    assert files(folder) == before


def write_config(folder: Path) -> None:
    """The config of an evaluation, which runs made by Python have not."""
    from harnessctl import recipes
    from harnessctl.evaluate.suite_manifests import settled, suite_manifest

    config = settled(recipes.compose(None, "eval", ["n=2"]), suite_manifest(None, "live-qa"))
    (folder / "config.yaml").write_text(recipes.to_yaml(config))


def test_a_missing_key_of_an_endpoint_is_told_before_anything_runs(root: Path, capsys: pytest.CaptureFixture[str]):
    path = root / "manifests" / "roles.yaml"
    path.write_text(path.read_text().replace("policy: scripted, script: b.jsonl", "key_env: NO_SUCH_KEY"))
    scripts(root)
    code, _out, err = call(capsys, "eval", "live-qa", "judge=panel", *KEYS, "--project", str(root))
    assert code == 2
    assert "NO_SUCH_KEY" in err
    assert not (root / "runs").exists()


def test_a_policy_that_votes_is_refused_before_anything_runs(root: Path, capsys: pytest.CaptureFixture[str]):
    scripts(root)
    keys = ("policy=openai", "model=openai", "model.name=MODEL-A", "model.base_url=http://127.0.0.1:9/v1")
    code, _out, err = call(capsys, "eval", "live-qa", "judge=panel", *KEYS, *keys, "--project", str(root))
    assert code == 2
    assert "no model grades itself" in err
    assert not (root / "runs").exists()


def test_a_run_with_two_records_of_one_id_is_refused(root: Path, judge: Bundle, answered: Callable[..., Path]):
    folder = answered(n=2)
    for name in ("scenarios", "trajectories", "scores"):
        path = path_of(folder, name)
        first, _second = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(first + first)
    with pytest.raises(RecordError, match="two items have the id"):
        judge_folder(folder, root, judge, panel_of_three())


def test_a_panel_that_never_answers_is_a_failure(root: Path, capsys: pytest.CaptureFixture[str]):
    write_scripts(root, a=[{"replies": [{"error": {"message": "down", "retryable": False, "times": 99}}]}] , b=[{"replies": [{"content": "x"}] * 40}], c=[{"replies": [{"content": "x"}] * 40}])  # fmt: skip
    code, _out, err = call(capsys, "eval", "live-qa", "judge=panel", *KEYS, "--project", str(root))
    assert code == 1
    assert (
        "no score for 6 items: no verdict of the panel: 1 without a score (endpoint), 2 without a score (prose)" in err
    )
