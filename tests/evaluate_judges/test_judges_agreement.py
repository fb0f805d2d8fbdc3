"""Agreement and kappa, against tables worked out by hand and naive code."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnessctl.evaluate.judging.agreement import agreement, kappa

GRADES = st.sampled_from([0.0, 0.5, 1.0])


def test_kappa_of_tables_worked_out_by_hand():
    # Agreement 35/50 = 0.7; by chance (25*30 + 25*20) / 50^2 = 0.5; (0.7 - 0.5) / 0.5 = 0.4.
    assert kappa([[20, 5], [10, 15]]) == pytest.approx(0.4)
    # Nobody agrees more than chance: rows and columns are independent.
    assert kappa([[6, 2], [3, 1]]) == pytest.approx(0)
    assert kappa([[5, 0], [0, 5]]) == 1
    assert kappa([[0, 5], [5, 0]]) == -1
    # Quadratic: weights 0, 1/4, 1; off the diagonal stand one pair a step apart and two pairs two apart: 1/4 + 2 = 2.25.
    # Rows 4, 3, 3; columns 3, 4, 3; by chance [(4*4 + 3*3 + 3*3 + 3*4) / 4 + 4*3 + 3*3] / 10 = (11.5 + 21) / 10 = 3.25.
    assert kappa([[2, 1, 1], [0, 3, 0], [1, 0, 2]], quadratic=True) == pytest.approx(1 - 2.25 / 3.25)


@pytest.mark.parametrize("counts", [[[0, 0], [0, 0]], [[9, 0], [0, 0]], [[0, 0], [0, 4]]])
def test_kappa_is_not_defined_where_chance_alone_explains_all(counts):
    assert kappa(counts) is None


def naive_kappa(pairs, weight):
    """1 - mean weight of the pairs / mean weight of all pairs of one's grade with another's."""
    seen = sum(weight(a, b) for a, b in pairs) / len(pairs)
    chance = sum(weight(a, b) for a, _ in pairs for _, b in pairs) / len(pairs) ** 2
    return None if chance == 0 else 1 - seen / chance


@given(st.lists(st.tuples(GRADES, GRADES), min_size=1, max_size=40))
def test_kappa_is_what_naive_code_says(pairs):
    found = agreement(pairs, "effectiveness")
    expected = naive_kappa(pairs, lambda a, b: (a - b) ** 2)
    assert found.kappa == expected or math.isclose(found.kappa, expected, abs_tol=1e-12)
    assert found.share == sum(a == b for a, b in pairs) / len(pairs)
    binary = [(round(a + 0.1), round(b + 0.1)) for a, b in pairs]
    two = agreement(binary, "accuracy").kappa
    naive = naive_kappa(binary, lambda a, b: a != b)
    assert two == naive or math.isclose(two, naive, abs_tol=1e-12)


def test_a_table_has_a_place_for_no_grade():
    found = agreement([(1, 1), (1, 0), (None, 1), (0, None), (None, None)], "accuracy")
    assert (found.items, found.missing, found.share) == (2, 3, 0.5)
    assert found.table == {"0": {"0": 0, "1": 0, "-": 1}, "1": {"0": 1, "1": 1, "-": 0}, "-": {"0": 0, "1": 1, "-": 1}}


def test_nothing_in_common_is_no_agreement():
    found = agreement([(None, 1)], "accuracy")
    assert (found.items, found.share, found.kappa) == (0, None, None)


def test_a_grade_off_the_scale_is_refused():
    with pytest.raises(ValueError, match=r"0\.7 is none of 0, 0\.5, 1"):
        agreement([(0.7, 1)], "effectiveness")
