"""Degraded oracles on the built sets: each lowers the rubrics that it says it lowers, and none that it says it spares."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from robust_jobs import N, scores

from harnessctl.records.score import Score
from harnessctl.records.task import metric_of
from harnessctl.simulate.flaws import flaws

#: Flaws that have nothing to do wrong: no twin to pick; in the small host no other tool to ask.
NOT_HERE = {"tool-robust": (), "prompt-robust": ("picks-distractor", "wrong-tool")}
METRICS = {"tool-robust": ("ACQ", "RC", "TC"), "prompt-robust": ("ACQ", "FI", "TCO")}
NAMES = [name for name, flaw in flaws().items() if not flaw.only_variants and name != "discloses"]


def mean(found: Sequence[Score], metric: str) -> float:
    values = [value for score in found if (value := score.value(metric)) is not None]
    return sum(values) / len(values)


@pytest.mark.parametrize("suite", list(METRICS))
@pytest.mark.parametrize("name", NAMES)
def test_a_flaw_lowers_the_rubrics_that_it_says(name: str, suite: str) -> None:
    flaw = flaws()[name]
    found = scores(suite, "mini", N, flaw=name)
    for metric in METRICS[suite]:
        expected = flaw.expected(metric)
        if name in NOT_HERE[suite]:
            expected = "stays"
        assert expected == "may fall" or (mean(found, metric) < 1) is (expected == "falls"), metric


@pytest.mark.parametrize("harness", ["live-stream", "mini"])
def test_a_wrong_pick_is_seen_in_tc_and_rc_wherever_there_is_a_twin(harness: str) -> None:
    for score in scores("tool-robust", harness, N, flaw="picks-distractor"):
        passed = {metric_of(name) for name, ok in score.rubrics.items() if ok}
        if score.level == "easy":
            assert {"TC", "RC"} <= passed, "no twin is there to be picked"
        else:
            assert not all(ok for name, ok in score.rubrics.items() if name.startswith("TC")), score
            assert not all(ok for name, ok in score.rubrics.items() if name.startswith("RC")), score


@pytest.mark.parametrize("harness", ["live-stream", "mini"])
def test_ignored_instructions_leave_the_answer_right(harness: str) -> None:
    found = scores("prompt-robust", harness, N, flaw="ignores-instructions")
    assert all(score.accuracy == score.effectiveness == 1 for score in found)
    assert mean(found, "FI") < 0.25
    assert all(score.value("ACQ") == 1 for score in found)
