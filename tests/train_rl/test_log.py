"""What is kept of rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harnessctl.storage import read_json_lines
from harnessctl.train.rl.advantages import Advantage, Graded
from harnessctl.train.rl.environment import Group, Rollout
from harnessctl.train.rl.log import RolloutLog
from harnessctl.train.rl.objective import Judged
from tests.train_rl.rl_project import score_of, trajectory_of


def judged(**more: Any) -> Judged:
    rollout = Rollout(trajectory_of([1, 2, 3], 1, [-1.0]), score_of(1.0))
    return Judged(Group(7, 3, [rollout]), rollout, Graded({}, False, {}), **more)


def steps(log: RolloutLog) -> list[int]:
    return [line["step"] for _, line in read_json_lines(log.path)]


def test_a_line_has_trajectory_score_and_advantages(tmp_path: Path) -> None:
    log = RolloutLog(tmp_path)
    log.write(0, [judged(raw=Advantage(1.0, 2.0), final=Advantage(0.5, -0.5)), judged(raw=Advantage(0.0, None))])
    (_, first), (_, second) = read_json_lines(tmp_path / "rollouts.jsonl")
    assert (first["step"], first["group"], first["variant"], first["reply"], first["tool"]) == (1, 7, 3, 0.5, -0.5)
    assert first["trajectory"]["paths"][0]["ids"] == [1, 2, 3]
    assert first["score"]["accuracy"] == 1.0
    assert "reply" not in second
    assert "unscored" not in second


def test_every_so_many_batches_or_none(tmp_path: Path) -> None:
    log = RolloutLog(tmp_path / "some", every=2, updates=2)
    for step in (0, 2, 4, 6):
        log.write(step, [judged()])
    assert steps(log) == [1, 5]
    none = RolloutLog(tmp_path / "none", every=0)
    none.write(0, [judged()])
    assert not none.path.exists()


def test_what_was_taken_back_is_dropped(tmp_path: Path) -> None:
    log = RolloutLog(tmp_path)
    for step in range(4):
        log.write(step, [judged()])
    log.path.write_bytes(log.path.read_bytes() + b'{"step": 5, "tr')
    log.rewind(2)
    assert steps(log) == [1, 2]
    log.rewind(0)
    assert steps(log) == []
    RolloutLog(tmp_path / "new").rewind(0)
