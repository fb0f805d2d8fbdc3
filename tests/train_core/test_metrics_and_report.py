from __future__ import annotations

from pathlib import Path

import pytest

from harnessctl.cli.training_progress import duration, line_of
from harnessctl.train.budget import Budget, Speed, probe
from harnessctl.train.config import PolicyConfig
from harnessctl.train.metrics import FILE_NAME, Metrics, read_metrics
from harnessctl.train.policy import load_policy
from harnessctl.train.report import ROWS, curve_names, markdown


def test_lines_of_steps_that_were_taken_back_are_dropped(tmp_path: Path):
    seen: list[int] = []
    with Metrics(tmp_path, board=False, show=lambda step, _: seen.append(step)) as metrics:
        for step in (1, 2, 3):
            metrics.log(step, {"loss": 1.0 / step})
    with open(tmp_path / FILE_NAME, "ab") as file:
        file.write(b'{"step":4,"lo')  # killed while it wrote
    with Metrics(tmp_path, board=False) as metrics:
        metrics.rewind(2)
        metrics.log(3, {"loss": 9.0})
    assert [(line["step"], line["loss"]) for line in read_metrics(tmp_path)] == [(1, 1.0), (2, 0.5), (3, 9.0)]
    assert seen == [1, 2, 3]


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with Metrics(None) as metrics:
        metrics.rewind(0)
        metrics.log(1, {"loss": 1.0})
    assert not list(tmp_path.iterdir()) and read_metrics(tmp_path) == []


def test_the_table_of_the_curves_says_the_mean_since_the_row_before():
    lines = [{"step": n + 1, "loss": float(n), "lr": 0.1, "seconds/data": 1.0} for n in range(100)]
    assert curve_names(lines) == ["loss"]
    rows = [line for line in markdown("t", [], lines).splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) == ROWS
    assert rows[0] == "| 1 | 0 |" and rows[1] == "| 8 | 4 |" and rows[-1].startswith("| 100 | ")
    assert "No step was taken." in markdown("t", [("status", "failed")], [])
    assert "| 1 | 2 |" in markdown("t", [], [{"step": 1, "loss": 2.0}])


def test_a_budget_takes_the_time_of_its_parts():
    budget = Budget(1000, 10, sampled_per_step=200, before=500)
    assert budget.tokens == 10_000 and budget.sampled == 2000
    assert Speed(0.01, 0.002, 0.05).seconds(budget, processes=2) == (100 + 100 + 1) / 2


def test_a_probe_times_and_leaves_no_gradient(tiny: Path):
    policy = load_policy(PolicyConfig(name="tiny", device="cpu", dtype="float32"), tiny)
    speed = probe(policy, Budget(100, 1, sampled_per_step=4, rows=3), length=32)
    assert speed.trained_s > 0 and speed.read_s > 0 and speed.sampled_s > 0
    assert all(parameter.grad is None for parameter in policy.model.parameters())


def test_the_progress_line():
    shown = line_of(
        {"loss": 1.0, "tokens_per_second": 5200.4, "discarded": 0.125, "reward/accuracy": 0.5, "cot/tool": 31}
    )
    assert shown == "loss 1  tokens/s 5,200  discarded 12%  accuracy 0.500  CoT tool 31.0"
    assert [duration(s) for s in (12, 185, 7500)] == ["12 s", "3 min", "2 h 05 min"]
