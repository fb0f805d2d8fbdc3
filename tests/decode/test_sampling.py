"""Draws and log-probabilities, against plain arithmetic."""

from __future__ import annotations

import math

import pytest
import torch

from harnessctl.decode.sampling import Sampler
from harnessctl.runtime.protocols import Sampling

LOGITS = torch.tensor([2.0, 1.0, 0.5, -1.0])
NONE = torch.tensor([], dtype=torch.int64)


def sampler(banned: torch.Tensor = NONE, **sampling: float) -> Sampler:
    return Sampler(Sampling(**sampling), banned=banned)


def draws(source: Sampler, count: int = 400, allowed: bytes | None = None) -> list[int]:
    return [source.draw(LOGITS, allowed)[0] for _ in range(count)]


def naive(token: int, temperature: float) -> float:
    scaled = [value / temperature for value in LOGITS.tolist()]
    return scaled[token] - math.log(sum(math.exp(value) for value in scaled))


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    first, again, other = (draws(sampler(temperature=1.0, seed=seed), 50) for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_without_a_seed_draws_differ() -> None:
    assert draws(sampler(temperature=1.0), 50) != draws(sampler(temperature=1.0), 50)


def test_temperature_zero_takes_the_best_that_is_allowed() -> None:
    assert set(draws(sampler(temperature=0.0), 5)) == {0}
    assert set(draws(sampler(temperature=0.0), 5, allowed=bytes([0, 1, 1, 1]))) == {1}
    assert set(draws(sampler(torch.tensor([0, 1])), 5)) == {2}


def test_frequencies_follow_the_distribution() -> None:
    drawn = draws(sampler(temperature=1.0, seed=1), 4000)
    for token in range(4):
        assert drawn.count(token) / 4000 == pytest.approx(math.exp(naive(token, 1.0)), abs=0.03)


@pytest.mark.parametrize("point", [0.0, 1.0])
def test_the_ends_of_the_mass_are_tokens_that_may_be_drawn(point: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda *size, **options: torch.tensor(point, dtype=torch.float64))
    assert set(draws(sampler(temperature=1.0, seed=0), 1, allowed=bytes([0, 1, 1, 0]))) == {1 if point == 0.0 else 2}


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.01, {0}), (0.6, {0}), (0.62, {0, 1}), (0.9, {0, 1, 2}), (1.0, {0, 1, 2, 3})]
)
def test_top_p_keeps_the_smallest_set_that_holds_the_mass(top_p: float, kept: set[int]) -> None:
    # The masses are 0.61, 0.22, 0.14 and 0.03.
    assert set(draws(sampler(temperature=1.0, top_p=top_p, seed=3))) == kept


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_log_probs_are_of_the_policy_before_top_p_and_grammar(temperature: float) -> None:
    source = sampler(torch.tensor([1]), temperature=temperature, top_p=0.1, seed=0)
    token, log_prob = source.draw(LOGITS, bytes([0, 0, 1, 0]))
    assert token == 2
    assert log_prob == pytest.approx(naive(2, temperature), abs=1e-5)
    assert source.log_probs(torch.stack([LOGITS, LOGITS]), [2, 3]) == pytest.approx(
        [naive(2, temperature), naive(3, temperature)], abs=1e-5
    )


def test_log_probs_at_temperature_zero_are_of_the_raw_logits() -> None:
    assert sampler().draw(LOGITS, None)[1] == pytest.approx(naive(0, 1.0), abs=1e-5)
