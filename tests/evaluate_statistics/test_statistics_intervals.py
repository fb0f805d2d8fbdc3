"""Intervals, tests and sizes, against a library, closed forms and counts by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnessctl.evaluate.statistics.binomial import sign_test
from harnessctl.evaluate.statistics.bootstrap import interval
from harnessctl.evaluate.statistics.families import by_family
from harnessctl.evaluate.statistics.noise import noise
from harnessctl.evaluate.statistics.sample_size import items_needed

stats = pytest.importorskip("scipy.stats")


def graded(n: int, seed: int) -> tuple[list[float], list[float]]:
    """Two systems' scores of n items, of which the second is a little better, and which go together."""
    generator = np.random.default_rng(seed)
    hard = generator.random(n)
    a = np.select([generator.random(n) > hard, generator.random(n) > 0.5], [1.0, 0.5], 0.0)
    b = np.where(generator.random(n) < 0.7, a, np.minimum(1.0, a + 0.5))
    return a.tolist(), b.tolist()


@pytest.mark.parametrize(("n", "seed"), [(978, 0), (150, 1), (20, 2)])
def test_percentile_intervals_are_those_of_scipy_to_the_resampling_error(n: int, seed: int) -> None:
    a, b = graded(n, seed)
    ours = interval([y - x for x, y in zip(a, b, strict=True)], seed=5)
    theirs = stats.bootstrap(
        (a, b),
        lambda x, y, axis: y.mean(axis=axis) - x.mean(axis=axis),
        paired=True,
        method="percentile",
        n_resamples=10_000,
        rng=np.random.default_rng(7),
        vectorized=True,
    )
    # A 2.5% quantile of 10,000 has a standard error of about 0.027 standard deviations; two of them differ by more.
    # And means come in steps of half a point by n.
    slack = 6 * 0.027 * float(theirs.standard_error) + 0.5 / n + 1e-9
    assert ours.mean == pytest.approx(np.mean(b) - np.mean(a))
    assert abs(ours.low - theirs.confidence_interval.low) <= slack
    assert abs(ours.high - theirs.confidence_interval.high) <= slack
    share = float((theirs.bootstrap_distribution <= 1e-12).mean())
    assert abs(ours.p_not_above - share) <= 6 * math.sqrt(share * (1 - share) / 10_000) + 1e-3


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    deltas = [y - x for x, y in zip(*graded(100, 3), strict=True)]
    assert interval(deltas, seed=1) == interval(deltas, seed=1)
    assert interval(deltas, seed=1) != interval(deltas, seed=2)


def test_items_of_one_cluster_are_drawn_together() -> None:
    """Ten clusters of twenty equal items are ten observations, not two hundred."""
    generator = np.random.default_rng(0)
    means = generator.normal(size=10)
    deltas = [float(mean) for mean in means for _ in range(20)]
    names = [number for number in range(10) for _ in range(20)]
    apart, together = interval(deltas, seed=0), interval(deltas, seed=0, clusters=names)
    alone = interval(means.tolist(), seed=0)
    assert together.clusters == 10 and together.n == 200
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))
    assert together.high - together.low > 3 * (apart.high - apart.low)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=40), st.integers(0, 9))
def test_laws_of_intervals(deltas: list[float], seed: int) -> None:
    found = interval(deltas, seed=seed, resamples=200)
    assert min(deltas) <= found.low <= found.high <= max(deltas)
    # Each item a cluster of its own is no clustering.
    same = interval(deltas, seed=seed, resamples=200, clusters=list(range(len(deltas))))
    assert (same.low, same.high) == pytest.approx((found.low, found.high))
    turned = interval([-delta for delta in deltas], seed=seed, resamples=200)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


@pytest.mark.parametrize(
    "call",
    [
        lambda: interval([], seed=0),
        lambda: interval([math.nan], seed=0),
        lambda: noise([], seed=0),
        lambda: noise([math.inf], seed=0),
        lambda: items_needed([], 0.1),
        lambda: items_needed([0.1], 0),
        lambda: sign_test(-1, 2),
    ],
)
def test_what_has_no_answer_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"of|above|least"):
        call()


def test_table_8() -> None:
    """35 wins, 64 ties, 1 loss: 97.2% of the non-ties, p < 0.001."""
    assert pytest.approx(97.2, abs=0.05) == 100 * 35 / 36
    assert sign_test(35, 1) == pytest.approx(2 * (1 + 36) / 2**36)
    assert sign_test(35, 1) < 0.001


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_sign_test_is_the_binomial_test(wins: int, losses: int) -> None:
    assert sign_test(wins, losses) == sign_test(losses, wins)
    wanted = stats.binomtest(wins, wins + losses, 0.5).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == pytest.approx(wanted, rel=1e-9)


def test_noise_is_what_chance_makes_of_the_signs() -> None:
    """Of four moves of one point each the mean's size is 1, 1/2 or 0 with chances 1/8, 1/2, 3/8."""
    found = noise([1.0, -1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], seed=0, level=0.8)
    assert found.delta == 0.25 and found.bound == 0.25
    assert noise([1.0, -1.0, 1.0, 1.0], seed=0, level=0.95).bound == 1.0
    assert noise([0.0] * 5, seed=0).bound == 0.0
    assert found.covers(0.25, 8) and not found.covers(0.26, 8)
    assert found.covers(0.3, 4)  # over fewer items chance does more


def test_noise_covers_two_runs_of_one_system_at_its_level() -> None:
    generator = np.random.default_rng(0)
    within = 0
    for _ in range(100):
        aside, fresh = ((generator.random(200) < 0.6).astype(float) - (generator.random(200) < 0.6) for _ in range(2))
        within += noise(aside.tolist(), seed=0, resamples=1000).covers(float(fresh.mean()), 200)
    assert within >= 88  # 95 are expected; 88 or fewer come once in five hundred times


def test_the_size_finds_the_difference_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    pilot = generator.choice([-1.0, 0.0, 1.0], size=5000, p=[0.15, 0.7, 0.15]).tolist()
    n = items_needed(pilot, 0.05)
    assert n == pytest.approx((1.959964 + 0.841621) ** 2 * np.var(pilot) / 0.05**2, abs=1)
    drawn = generator.choice([-1.0, 0.0, 1.0], size=(2000, n), p=[0.125, 0.7, 0.175])
    z = drawn.mean(axis=1) / (drawn.std(axis=1) / math.sqrt(n))
    assert 0.76 <= float((abs(z) > 1.96).mean()) <= 0.84


def test_the_worst_family_comes_first_at_a_level_for_all_of_them() -> None:
    deltas = [0.1, 0.2, -0.5, -0.1, 0.0, 0.0]
    found = by_family(deltas, ["a", "a", "b", "b", "c", "c"], seed=0)
    assert [one.name for one in found] == ["b", "c", "a"]
    assert found[0].interval.level == pytest.approx(1 - 0.05 / 3)
    assert found[0].interval.mean == pytest.approx(-0.3) and found[0].interval.n == 2
