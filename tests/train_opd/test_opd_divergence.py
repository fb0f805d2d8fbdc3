"""Reverse KL against the closed form, in value and in gradient."""

from __future__ import annotations

import math

import pytest
import torch

from harnessctl.train.opd.divergence import divergence_from, reverse_kl


def by_hand(student: list[float], base: list[float], temperature: float) -> tuple[float, list[float]]:
    """The divergence of one position and its gradient by the student's logits, in plain floats."""

    def probabilities(logits: list[float]) -> list[float]:
        powers = [math.exp(value / temperature) for value in logits]
        return [power / sum(powers) for power in powers]

    ours, theirs = probabilities(student), probabilities(base)
    ratios = [math.log(p / q) for p, q in zip(ours, theirs, strict=True)]
    divergence = sum(p * ratio for p, ratio in zip(ours, ratios, strict=True))
    return divergence, [p * (ratio - divergence) / temperature for p, ratio in zip(ours, ratios, strict=True)]


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.5])
def test_value_and_gradient_are_the_closed_form(temperature: float) -> None:
    student = [[0.3, -1.2, 2.0], [5.0, 0.0, -3.0]]
    base = [[1.0, 0.2, -0.4], [4.0, 1.0, -9.0]]
    logits = torch.tensor(student, dtype=torch.float64, requires_grad=True)
    other = torch.tensor(base, dtype=torch.float64, requires_grad=True)
    found = reverse_kl(logits, other, temperature)
    found.sum().backward()
    wanted = [by_hand(one, two, temperature) for one, two in zip(student, base, strict=True)]
    torch.testing.assert_close(found, torch.tensor([value for value, _ in wanted], dtype=torch.float64))
    torch.testing.assert_close(logits.grad, torch.tensor([gradient for _, gradient in wanted], dtype=torch.float64))
    assert other.grad is None


def test_two_outcomes_by_hand() -> None:
    """p = (3/4, 1/4), b = (1/2, 1/2): 3/4 log(3/2) + 1/4 log(1/2)."""
    student = torch.tensor([[math.log(3.0), 0.0]])
    found = reverse_kl(student, torch.zeros(1, 2))
    assert found.item() == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))


def test_equal_distributions_have_none_and_a_shift_is_none() -> None:
    logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = reverse_kl(logits, logits.detach() + 3.0).sum()
    loss.backward()
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
    assert logits.grad is not None and logits.grad.abs().max() < 1e-6


def test_it_is_the_reverse_one() -> None:
    """Mass where the base has none costs much; a mode of the base that is left out costs little."""
    narrow, wide = torch.tensor([[9.0, 0.0, 0.0]]), torch.tensor([[9.0, 9.0, 0.0]])
    assert reverse_kl(wide, narrow).item() > 3
    assert reverse_kl(narrow, wide).item() < 1


def test_the_loss_of_positions_is_the_sum_and_the_entropy() -> None:
    head = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    states = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))
    logits = torch.randn(3, 6, generator=torch.Generator().manual_seed(3))
    total, entropy = divergence_from(lambda given: given @ head, 2.0)(logits, states)
    torch.testing.assert_close(total, reverse_kl(logits, states @ head, 2.0).sum())
    torch.testing.assert_close(entropy, torch.distributions.Categorical(logits=logits).entropy().sum())
