"""Items answered several times, answers that are asked for again, and answers of earlier runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evaluate_jobs import Evaluate, folder_of

from harnessctl.errors import HarnessctlError, UsageError
from harnessctl.evaluate.cache import AnswerCache
from harnessctl.evaluate.evaluation import check, evaluate
from harnessctl.evaluate.files import path_of, read_records
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.outcome import Outcome
from harnessctl.evaluate.repeats import SameFaults, repeat_of, repeated, repeated_id
from harnessctl.evaluate.rescoring import rescore
from harnessctl.records.score import Score
from harnessctl.trajectory import read_trajectories


def scores_of(folder: Path) -> list[Score]:
    return list(read_records(folder, "scores"))


def test_repeats_come_after_all_items_and_say_which_they_are(evaluated: Evaluate) -> None:
    folder, report = evaluated(n=3, repeats=2, suite="variant-qa")
    scores = scores_of(folder)
    assert [score.repeat for score in scores] == [0, 0, 0, 1, 1, 1]
    assert [score.id for score in scores[3:]] == [f"{score.scenario}#2" for score in scores[:3]]
    assert [score.scenario for score in scores[:3]] == [score.scenario for score in scores[3:]]
    assert [score.bundle for score in scores[:3]] == [score.bundle for score in scores[3:]]
    assert report.total.items == 6


def test_rescoring_keeps_which_repeat_it_was(evaluated: Evaluate) -> None:
    folder, _ = evaluated(n=3, repeats=2)
    before = scores_of(folder)
    assert rescore(folder, writes=["reserve"]) == 0
    path_of(folder, "scores").unlink()
    rescore(folder, writes=["reserve"])
    assert scores_of(folder) == before


def test_a_run_of_repeats_is_the_same_on_two_processes_and_after_a_break(
    evaluated: Evaluate, job: Callable[..., Job], tmp_path: Path
) -> None:
    whole, _ = evaluated("whole", n=4, repeats=3)
    spread, _ = evaluated("spread", n=4, repeats=3, workers=2)
    wanted = job(n=4, repeats=3)
    broken = folder_of(wanted, tmp_path / "broken")

    class Enough(Exception):
        pass

    seen: list[Outcome] = []

    def stop(outcome: Outcome) -> None:
        seen.append(outcome)
        if len(seen) == 6:
            raise Enough

    with wanted.setting() as setting:
        with pytest.raises(Enough):
            evaluate(wanted, broken, setting, on_done=stop)
        evaluate(wanted, broken, setting)
    files = [path_of(folder, "scores").read_bytes() for folder in (whole, spread, broken.path)]
    assert files[0] == files[1] == files[2]


def test_the_ids_of_repeats_are_each_others_inverse(job: Callable[..., Job]) -> None:
    with job(n=2).setting() as setting:
        item = job(n=2).rollouts(setting).item(1)
        for repeat in range(4):
            again = repeated(item, repeat)
            assert again.scenario.request.id == repeated_id(item.scenario.request.id, repeat)
            assert again.repeat == repeat_of(again.scenario.request.id, again.scenario.id) == repeat


def test_repeats_meet_the_same_faults() -> None:
    asked: list[str] = []

    class Listening:
        def draw(self, request_id: str, tool: Any, args: dict[str, Any], number: int) -> None:
            asked.append(request_id)

    for name in ("a-1", "a-1#2", "a-1#13"):
        SameFaults(Listening()).draw(name, None, {}, 0)
    assert asked == ["a-1"] * 3


def script(folder: Path, *lines: dict[str, Any]) -> str:
    path = folder / "script.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def stops(folder: Path) -> list[str]:
    return [trajectory.stop for trajectory in read_trajectories(path_of(folder, "trajectories"))]


def test_what_had_no_answer_is_asked_again_at_the_end(
    job: Callable[..., Job], tmp_path: Path, evaluated: Evaluate
) -> None:
    """Replies in order: the second request finds none left, and neither does its repeat."""
    wanted = job(n=3, policy="scripted", script=script(tmp_path, {"content": "Welcome!"}), retries=2)
    folder = folder_of(wanted, tmp_path / "run")
    again: list[str] = []
    done: list[str] = []
    with wanted.setting() as setting:
        evaluate(
            wanted,
            folder,
            setting,
            on_done=lambda outcome: done.append(outcome.id),
            on_retry=lambda outcome: again.append(outcome.id),
        )
    failed = [name for name, stop in zip(done, stops(folder.path), strict=True) if stop == "model_error"]
    assert failed and again == failed * 2
    assert sorted(done) == sorted(score.id for score in scores_of(folder.path)) and len(done) == 3


def test_fail_on_error_stops_at_the_first_and_keeps_what_was_done(job: Callable[..., Job], tmp_path: Path) -> None:
    wanted = job(n=3, policy="scripted", script=script(tmp_path, {"content": "Welcome!"}), fail_on_error=True)
    folder = folder_of(wanted, tmp_path / "run")
    with wanted.setting() as setting, pytest.raises(HarnessctlError, match="has no answer: "):
        evaluate(wanted, folder, setting)
    assert stops(folder.path)[-1] == "model_error" and len(scores_of(folder.path)) < 3


def test_answers_are_found_again_for_the_very_same_request_alone(job: Callable[..., Job], tmp_path: Path) -> None:
    wanted = job(n=3)
    with wanted.setting() as setting:
        rollouts = wanted.rollouts(setting)
        item = rollouts.item(0)
        trajectory, _ = asyncio.run(rollouts.play(item))
        cache = AnswerCache(tmp_path, setting)
        assert cache.find(item) is None
        cache.keep(item, trajectory, {"reserved": [{"link_id": 1}]})
        found = cache.find(item)
        assert found is not None
        assert msgspec.to_builtins(found[0]) == msgspec.to_builtins(trajectory)
        assert found[1] == {"reserved": [{"link_id": 1}]}
        assert cache.find(rollouts.item(1)) is None and cache.find(repeated(item, 1)) is None
        cache.keep(repeated(item, 1), msgspec.structs.replace(trajectory, stop="model_error"), None)
        assert cache.find(repeated(item, 1)) is None
    for changed in (job(n=3, seed=1), job(n=3, flaw="over-long"), job(n=3, loop="react")):
        with changed.setting() as setting:
            assert AnswerCache(tmp_path, setting).find(item) is None
    with job(n=2, repeats=3, workers=2).setting() as setting:
        assert AnswerCache(tmp_path, setting).find(item) is not None


def test_a_damaged_entry_is_asked_again(job: Callable[..., Job], tmp_path: Path) -> None:
    wanted = job(n=1)
    with wanted.setting() as setting:
        rollouts = wanted.rollouts(setting)
        item = rollouts.item(0)
        trajectory, _ = asyncio.run(rollouts.play(item))
        cache = AnswerCache(tmp_path, setting)
        cache.keep(item, trajectory, None)
        (entry,) = tmp_path.rglob("*.json")
        entry.write_bytes(entry.read_bytes()[:-20])
        assert cache.find(item) is None


def test_a_policy_that_answers_at_once_has_no_use_for_the_cache(job: Callable[..., Job]) -> None:
    with pytest.raises(UsageError, match="cache=true"):
        check(job(cache=True))
