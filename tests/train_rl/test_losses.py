"""The clipped surrogate and its neighbours, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from harnessctl.train.rl.losses import k3, mean_by, surrogate


def logs(*ratios: float) -> torch.Tensor:
    return torch.tensor([math.log(r) for r in ratios], dtype=torch.float64, requires_grad=True)


def test_the_first_update_has_the_gradient_of_the_policy() -> None:
    log_probs = torch.tensor([-1.0, -2.0], requires_grad=True)
    found = surrogate(log_probs, log_probs.detach(), torch.tensor([2.0, -3.0]), low=0.2, high=0.2)
    assert found.losses.tolist() == [-2.0, 3.0]
    found.losses.sum().backward()
    assert log_probs.grad is not None
    # Going down the gradient raises what was better than its siblings and lowers what was worse.
    assert log_probs.grad.tolist() == [-2.0, 3.0]


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "is_held"),
    [
        (1.1, 1.0, -1.1, False),
        (1.5, 1.0, -1.28, True),  # beyond 1 + high, and to be raised further: held
        (1.5, -1.0, 1.5, False),  # beyond it, and to be lowered: free
        (0.5, 1.0, -0.5, False),
        (0.5, -1.0, 0.8, True),  # below 1 - low, and to be lowered further: held
        (0.9, -1.0, 0.9, False),
        (1.5, 0.0, 0.0, False),
    ],
)
def test_clipping(ratio: float, advantage: float, loss: float, is_held: bool) -> None:
    log_probs = logs(ratio)
    found = surrogate(log_probs, torch.zeros(1), torch.tensor([advantage]), low=0.2, high=0.28)
    assert found.losses.item() == pytest.approx(loss, rel=1e-6)
    assert found.clipped.item() is is_held
    found.losses.sum().backward()
    assert log_probs.grad is not None
    assert (log_probs.grad.item() == 0.0) is (is_held or advantage == 0.0)


def test_the_ratio_of_a_sequence_is_the_mean_of_its_logs() -> None:
    log_probs = logs(1.2, 0.9, 2.0)
    sequences = torch.tensor([0, 0, 1])
    found = surrogate(log_probs, torch.zeros(3), torch.tensor([1.0, 0.5, -1.0]), low=0.9, high=9.0, sequences=sequences)
    first = math.sqrt(1.2 * 0.9)
    assert found.ratio.tolist() == pytest.approx([first, first, 2.0])
    assert found.losses.tolist() == pytest.approx([-first, -0.5 * first, 2.0])


def test_the_ratio_of_a_sequence_leaves_each_token_its_own_advantage() -> None:
    log_probs = logs(1.2, 0.9, 2.0)
    sequences = torch.tensor([0, 0, 1])
    advantages = torch.tensor([1.0, 0.5, -1.0])
    surrogate(log_probs, torch.zeros(3), advantages, low=0.9, high=9.0, sequences=sequences).losses.sum().backward()
    first = math.sqrt(1.2 * 0.9)
    assert log_probs.grad is not None
    assert log_probs.grad.tolist() == pytest.approx([-first, -0.5 * first, 2.0])


def test_with_one_advantage_the_gradient_is_that_of_gspo() -> None:
    log_probs = logs(1.2, 0.9, 0.7)
    sequences = torch.zeros(3, dtype=torch.int64)
    surrogate(
        log_probs, torch.zeros(3), torch.full((3,), 0.8), low=0.9, high=9.0, sequences=sequences
    ).losses.sum().backward()
    ours = log_probs.grad
    plain = logs(1.2, 0.9, 0.7)
    (-3 * plain.mean().exp() * 0.8).backward()
    torch.testing.assert_close(ours, plain.grad)


def test_means_by_sequence() -> None:
    assert mean_by(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 1])).tolist() == [2.0, 5.0]
    assert mean_by(torch.zeros(0), torch.zeros(0, dtype=torch.int64)).tolist() == []


def test_k3_is_the_kl_in_the_mean() -> None:
    policy, reference = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.2, 0.6])
    estimates = k3(policy.log(), reference.log())
    assert (estimates >= 0).all()
    kl = float((policy * (policy / reference).log()).sum())
    # Weighted by the policy, exp(d) - 1 adds up to nothing.
    assert float((policy * estimates).sum()) == pytest.approx(kl, abs=1e-6)
