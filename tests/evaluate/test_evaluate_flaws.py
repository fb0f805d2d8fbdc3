"""Degraded oracles: each lowers what it says it lowers, and nothing that it says it spares."""

from __future__ import annotations

import pytest
from evaluate_jobs import Evaluate

from harnessctl.evaluate.config import FaultsConfig
from harnessctl.evaluate.files import read_records
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.simulate.flaws import flaws

NO_FAULTS = FaultsConfig(timeout=0.0, malformed=0.0, denied=0.0, stale=0.0)
N = 40


def scores(evaluated: Evaluate, name: str, **keys: object) -> list[Score]:
    folder, _ = evaluated(name, n=N, faults=NO_FAULTS, **keys)
    return list(read_records(folder, "scores"))


@pytest.mark.parametrize(
    "name", [name for name, flaw in flaws().items() if name != "ignores-rule" and not flaw.only_tasks]
)
def test_a_flaw_lowers_what_it_should(evaluated: Evaluate, name: str) -> None:
    flaw = flaws()[name]
    suite = "variant-qa" if flaw.only_variants else "live-qa"
    right, flawed = scores(evaluated, "right", suite=suite), scores(evaluated, "flawed", suite=suite, flaw=name)
    for dimension in DIMENSIONS:
        before, after = ([getattr(score, dimension) for score in found] for found in (right, flawed))
        assert None not in after
        if dimension in flaw.lowers:
            assert sum(after) < sum(before), dimension
        assert all(one >= other for one, other in zip(before, after, strict=True))
    shown = [two for one, two in zip(right, flawed, strict=True) if one.average == 1 and two != one]
    assert shown, "the flaw showed nowhere"


def test_a_flaw_shows_in_its_share_of_the_items(evaluated: Evaluate) -> None:
    never = scores(evaluated, "never", flaw="wrong-skill", flaw_rate=0.0)
    some = scores(evaluated, "some", flaw="wrong-skill", flaw_rate=0.5)
    always = scores(evaluated, "always", flaw="wrong-skill")
    wrong = [sum(score.skill_selection == 0 for score in found) for found in (never, some, always)]
    assert wrong[0] == 0 < wrong[1] < wrong[2]


def test_a_policy_is_named_with_its_flaw(evaluated: Evaluate) -> None:
    folder, _ = evaluated(flaw="over-long", n=5)
    assert all(score.accuracy == 0 for score in read_records(folder, "scores") if score.intent != "spam")
