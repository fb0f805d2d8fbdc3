"""Aggregation: verdicts that missing votes could not change."""

from __future__ import annotations

from itertools import product
from statistics import median as middle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnessctl.evaluate.judging.aggregation import majority, median

STEPS = (0.0, 0.5, 1.0)


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ([1, 1, 0], 1),
        ([0, 1, 0], 0),
        ([1, 1, None], 1),
        ([1, 0, None], None),
        ([1, None, None], None),
        ([None, None, None], None),
        ([0], 0),
        ([1, 0], None),
        ([], None),
    ],
)
def test_accuracy_is_what_more_than_half_of_the_whole_panel_says(votes, verdict):
    assert majority(votes) == verdict


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ([0, 0.5, 1], 0.5),
        ([0.5, 1, 1], 1),
        ([0.5, 0.5, None], 0.5),
        ([0.5, 1, None], None),
        ([0, 0, None], 0),
        ([1, None, None], None),
        ([0, 0.5, 0.5, 1, None], 0.5),
        ([0, 1], None),
        ([1, 1], 1),
        ([], None),
    ],
)
def test_effectiveness_is_the_median_that_missing_votes_cannot_move(votes, verdict):
    assert median(votes) == verdict


@given(st.lists(st.sampled_from([*STEPS, None]), min_size=1, max_size=5).filter(lambda votes: len(votes) % 2 == 1))
def test_the_median_is_that_of_every_way_to_fill_the_missing_votes_in(votes):
    """Naive: all fillings have one median, or there is no verdict."""
    filled = [
        [next(fill) if v is None else v for v in votes] for fill in map(iter, product(STEPS, repeat=votes.count(None)))
    ]
    medians = {middle(one) for one in filled}
    assert median(votes) == (medians.pop() if len(medians) == 1 else None)


@given(st.lists(st.sampled_from([0.0, 1.0, None]), min_size=1, max_size=5).filter(lambda votes: len(votes) % 2 == 1))
def test_the_majority_is_that_of_every_way_to_fill_the_missing_votes_in(votes):
    filled = [
        [next(fill) if v is None else v for v in votes]
        for fill in map(iter, product((0.0, 1.0), repeat=votes.count(None)))
    ]
    winners = {max((0.0, 1.0), key=one.count) for one in filled}
    assert majority(votes) == (winners.pop() if len(winners) == 1 else None)


@given(st.lists(st.sampled_from([*STEPS, None]), max_size=6), st.randoms())
def test_the_order_of_votes_does_not_matter(votes, random):
    other = random.sample(votes, len(votes))
    assert (majority(votes), median(votes)) == (majority(other), median(other))
