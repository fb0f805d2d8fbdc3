"""GDPO: by hand-computed numbers, against a naive reference, and what must hold for every length of reasoning."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.train.rl.advantages import Advantage, Graded, batch_advantages, group_advantages, z_scores
from harnessctl.train.rl.penalty import Penalty

NONE = Penalty(weight=0.0)


def rollout(
    accuracy: float | None = 0.0,
    effectiveness: float | None = 0.0,
    rationality: float | None = 0.0,
    skill: float | None = 0.0,
    *,
    calls: bool = True,
    tool: int = 0,
    reply: int = 0,
) -> Graded:
    scores = {
        "accuracy": accuracy,
        "effectiveness": effectiveness,
        "tool_rationality": rationality,
        "skill_selection": skill,
    }
    return Graded(scores=scores, has_call=calls, cot={"tool": tool, "reply": reply})


def test_z_scores_are_of_the_population() -> None:
    assert z_scores([1.0, 0.0, 0.0, 1.0]) == [1.0, -1.0, -1.0, 1.0]
    assert z_scores([0.0, 0.0, 3.0]) == pytest.approx([-(0.5**0.5), -(0.5**0.5), 2**0.5])


def test_equal_values_have_no_scores_though_they_do_not_add_up() -> None:
    assert z_scores([0.1] * 3) == [0.0] * 3
    assert z_scores([0.7]) == [0.0]
    assert z_scores([]) == []


def test_a_group_by_hand() -> None:
    # accuracy 1 1 0 0 -> 1 1 -1 -1; effectiveness 1 .5 .5 0: mean .5, std sqrt(.125) -> sqrt 2, 0, 0, -sqrt 2
    # rationality 1 0 0 1 -> 1 -1 -1 1; skill 1 1 1 1 -> 0
    found = group_advantages(
        [rollout(1, 1, 1, 1), rollout(1, 0.5, 0, 1), rollout(0, 0.5, 0, 1), rollout(0, 0, 1, 1)], NONE
    )
    root = math.sqrt(2)
    assert [one.reply for one in found] == pytest.approx([1 + root, 1, -1, -1 - root])
    assert [one.tool for one in found] == pytest.approx([1, -1, -1, 1])


def test_the_penalty_is_taken_off_its_own_group_by_hand() -> None:
    # q of 0, 625, 1250 tokens: 0 1 1; z: -sqrt 2, 1 / sqrt 2, 1 / sqrt 2
    found = group_advantages([rollout(tool=0), rollout(tool=625), rollout(tool=1250)], Penalty(weight=0.1))
    assert [one.tool for one in found] == pytest.approx([0.1 * 2**0.5, -0.1 * 0.5**0.5, -0.1 * 0.5**0.5])
    assert [one.reply for one in found] == [0.0, 0.0, 0.0]


def test_a_missing_score_is_not_a_zero() -> None:
    found = group_advantages([rollout(1), rollout(0), rollout(None)], NONE)
    assert [one.reply for one in found] == [1.0, -1.0, 0.0]
    as_zero = group_advantages([rollout(1), rollout(0), rollout(0)], NONE)
    assert as_zero[0].reply == pytest.approx(2**0.5)


def test_without_a_call_there_is_no_advantage_of_tools_nor_a_part_in_their_statistics() -> None:
    found = group_advantages(
        [rollout(1, rationality=1), rollout(0, rationality=0), rollout(1, rationality=0, calls=False)], NONE
    )
    assert [one.tool for one in found] == [1.0, -1.0, None]
    assert found[2].reply == pytest.approx(0.5**0.5)


def test_the_length_of_reasoning_before_a_call_counts_only_where_there_is_one() -> None:
    found = group_advantages([rollout(tool=125), rollout(tool=375), rollout(tool=0, calls=False)], Penalty(weight=1.0))
    assert [one.tool for one in found] == pytest.approx([1.0, -1.0, None])


def test_zero_ones_are_discarded_before_the_batch_is_normalised() -> None:
    raw = [Advantage(3.0, 1.0), Advantage(0.0, 0.0), Advantage(1.0, None), Advantage(0.0, None), Advantage(0.0, -1.0)]
    found = batch_advantages(raw)
    assert found[1] is None
    assert found[3] is None
    # reply: 3, 1, 0 -> mean 4/3, std sqrt(14)/3; with the two zeros the mean would have been 0.8
    std = math.sqrt(14) / 3
    kept = [found[0], found[2], found[4]]
    assert [one.reply for one in kept if one] == pytest.approx([(x - 4 / 3) / std for x in (3, 1, 0)])
    assert [one.tool for one in kept if one] == [1.0, None, -1.0]


def test_a_sum_that_is_zero_but_for_rounding_is_discarded() -> None:
    assert batch_advantages([Advantage(1e-17, -1e-16), Advantage(1.0, 1.0), Advantage(-1.0, -1.0)])[0] is None


def test_a_batch_without_a_difference_is_discarded_as_a_whole() -> None:
    assert batch_advantages(group_advantages([rollout(1, 1, 1, 1)] * 4, Penalty())) == [None] * 4


def test_q_rises_to_one() -> None:
    penalty = Penalty()
    assert penalty.score(0) == 0.0
    assert penalty.score(625) == penalty.score(10_000) == 1.0
    # The means that the paper logged [5.4].
    assert penalty.score(291) == pytest.approx(0.466, abs=1e-3)
    assert penalty.score(171) == pytest.approx(0.272, abs=3e-3)


def test_lambda_rises_over_the_ramp() -> None:
    penalty = Penalty(weight=0.1, ramp=4)
    assert [penalty.weight_at(step) for step in (0, 1, 3, 9)] == pytest.approx([0.025, 0.05, 0.1, 0.1])
    assert Penalty(weight=0.1).weight_at(0) == 0.1


def naive(rollouts: list[Graded], weight: float, group: str) -> list[float | None]:
    """The formula as it is written, term by term."""
    names = {"tool": ("tool_rationality", "skill_selection"), "reply": ("accuracy", "effectiveness")}[group]
    among = [i for i, r in enumerate(rollouts) if group == "reply" or r.has_call]
    out: list[float | None] = [None if i not in among else 0.0 for i in range(len(rollouts))]
    terms = [({i: rollouts[i].scores[name] for i in among}, 1.0) for name in names]
    terms.append(({i: min(1.0, rollouts[i].cot[group] / 625) for i in among}, -weight))
    for values, factor in terms:
        given = {i: v for i, v in values.items() if v is not None}
        if not given:
            continue
        mean = sum(given.values()) / len(given)
        std = (sum((v - mean) ** 2 for v in given.values()) / len(given)) ** 0.5
        for i, v in given.items():
            out[i] = (out[i] or 0.0) + (factor * (v - mean) / std if std > 1e-6 else 0.0)
    return out


graded = st.builds(
    rollout,
    st.sampled_from([0.0, 1.0, None]),
    st.sampled_from([0.0, 0.5, 1.0, None]),
    st.sampled_from([0.0, 0.25, 0.5, 1.0, None]),
    st.sampled_from([0.0, 1.0, None]),
    calls=st.booleans(),
    tool=st.integers(0, 900),
    reply=st.integers(0, 900),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(graded, min_size=1, max_size=8))
def test_as_the_naive_reference(rollouts: list[Graded]) -> None:
    found = group_advantages(rollouts, Penalty(weight=0.3))
    for group in ("tool", "reply"):
        expected = naive(rollouts, 0.3, group)
        values = [getattr(one, group) for one in found]
        assert [value is None for value in values] == [value is None for value in expected]
        assert [v for v in values if v is not None] == pytest.approx([v for v in expected if v is not None], abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(graded, min_size=2, max_size=8), st.integers(0, 7), st.integers(1, 700), st.sampled_from(["tool", "reply"])
)
def test_a_longer_cot_never_gains_in_its_group(rollouts: list[Graded], which: int, more: int, group: str) -> None:
    which %= len(rollouts)
    one = rollouts[which]
    longer = Graded(one.scores, one.has_call, {**one.cot, group: one.cot[group] + more})
    changed = [*rollouts[:which], longer, *rollouts[which + 1 :]]
    before = getattr(group_advantages(rollouts, Penalty(weight=0.5))[which], group)
    after = getattr(group_advantages(changed, Penalty(weight=0.5))[which], group)
    assert (before is None and after is None) or after <= before + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.lists(graded, min_size=3, max_size=8), st.integers(1, 700), st.sampled_from(["tool", "reply"]))
def test_of_two_equal_ones_the_longer_is_never_ahead_in_the_batch(
    rollouts: list[Graded], more: int, group: str
) -> None:
    first = rollouts[0]
    longer = Graded(first.scores, first.has_call, {**first.cot, group: first.cot[group] + more})
    raw = group_advantages([first, longer, *rollouts[1:]], Penalty(weight=0.5))
    short, long = batch_advantages(raw)[:2]
    if short is not None and long is not None and getattr(short, group) is not None:
        assert getattr(long, group) <= getattr(short, group) + 1e-9
