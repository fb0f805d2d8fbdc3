"""The loss against three loops, and its index on a sequence made by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from harnessctl.train.mtp.head import NextNHead
from harnessctl.train.mtp.loss import counts, depth_losses, depth_weights, is_counted
from tests.train_mtp.conftest import VOCAB, hidden_of
from tests.train_mtp.test_head import head_of, row


def test_the_index_by_hand() -> None:
    """y = 10 11 12 13 14 15, of which the policy said 13, 14, 15. At t=1 depth 0 is asked for 13, depth 1 for 14."""
    ids = torch.tensor([[10, 11, 12, 13, 14, 15]])
    mask = torch.tensor([[0, 0, 0, 1, 1, 1]])
    segments = torch.ones_like(ids)
    assert is_counted(mask, segments, 0, "policy").tolist() == [[False, True, True, True, False, False]]
    assert is_counted(mask, segments, 1, "policy").tolist() == [[True, True, True, False, False, False]]
    assert is_counted(mask, segments, 2, "policy").tolist() == [[True, True, False, False, False, False]]
    assert counts(mask, segments, 3, "policy") == [3, 3, 2]
    assert counts(mask, segments, 3, "all") == [4, 3, 2]  # T-2-k of T=6: one less than the paper's T-1-k

    certain = torch.zeros(1, 6, VOCAB)  # "outputs" that are the logits themselves
    certain[0, 1, 13] = 50.0
    certain[0, 2, 14] = 50.0
    certain[0, 3, 15] = 50.0
    losses, hits = depth_losses([certain], lambda x: x, ids, mask, segments)
    assert float(losses[0]) == pytest.approx(0.0, abs=1e-6) and hits == [3]


class ToyHead:
    """A head that says at depth k what it was told: y_{t+1+k}. On 0 1 2 3 ... it is right when labels are one off."""

    def outputs(self, ids: torch.Tensor, depths: int) -> list[torch.Tensor]:
        told = [torch.roll(ids, -1 - depth, dims=-1) for depth in range(depths)]
        return [nn.functional.one_hot((t + 1) % VOCAB, VOCAB).float() * 50 for t in told]


def test_a_toy_target_that_counts() -> None:
    """A policy that counts up: depth k, told y_{t+1+k}, is right with one more than it, at every depth."""
    ids = torch.arange(20)[None]
    ones = torch.ones_like(ids)
    losses, hits = depth_losses(ToyHead().outputs(ids, 3), lambda x: x, ids, ones, ones)
    assert hits == counts(ones, ones, 3, "policy") == [18, 17, 16]
    assert all(float(loss) == pytest.approx(0.0, abs=1e-5) for loss in losses)


@pytest.mark.parametrize("labels", ["policy", "all"])
@pytest.mark.parametrize("rows_at_once", [3, 4096])
def test_three_loops(llama: Any, labels: Any, rows_at_once: int) -> None:
    head, given = head_of(llama), row(9, 2, 7)
    mask = (torch.rand(1, 18, generator=torch.Generator().manual_seed(1)) < 0.6).long()
    hidden = torch.cat([hidden_of(llama, part) for part in given["ids"].split([9, 2, 7], dim=1)], dim=1)
    outputs = head(hidden, **given, depths=3)
    weights = depth_weights(3, "decay", 0.8)
    losses, _ = depth_losses(
        outputs, head.logits, given["ids"], mask, given["segments"], labels=labels, rows_at_once=rows_at_once
    )
    z = sum(w * n for w, n in zip(weights, counts(mask, given["segments"], 3, labels), strict=True))
    found = sum(w * loss for w, loss in zip(weights, losses, strict=True)) / z

    outputs = [output.detach() for output in outputs]
    total, terms, start = 0.0, 0.0, 0
    for length in (9, 2, 7):
        y, said = given["ids"][0, start : start + length], mask[0, start : start + length]
        for k in range(3):
            for t in range(length):
                if t + 2 + k < length and (labels == "all" or said[t + 2 + k]):
                    logits = llama.lm_head.weight @ outputs[k][0, start + t]
                    total += 0.8**k * float(logits.logsumexp(0) - logits[y[t + 2 + k]])
                    terms += 0.8**k
        start += length
    assert z == pytest.approx(terms)
    assert float(found.detach()) == pytest.approx(total / terms, rel=1e-5)


def test_gradients_do_not_depend_on_how_many_logits_are_held(llama: Any) -> None:
    grads = []
    for rows_at_once in (2, 4096):
        head, given = head_of(llama), row(9)
        outputs = head(hidden_of(llama, given["ids"]), **given, depths=2)
        losses, _ = depth_losses(
            outputs, head.logits, given["ids"], torch.ones(1, 9), given["segments"], rows_at_once=rows_at_once
        )
        sum(losses).backward()
        grads.append(head.fc.weight.grad)
    assert torch.allclose(grads[0], grads[1], atol=1e-5)


def test_a_row_without_a_label_has_a_loss_of_zero_with_a_gradient(llama: Any) -> None:
    head, given = head_of(llama), row(5)
    outputs = head(hidden_of(llama, given["ids"]), **given, depths=2)
    losses, hits = depth_losses(outputs, head.logits, given["ids"], torch.zeros(1, 5), given["segments"])
    loss = sum(losses)
    loss.backward()
    assert float(loss.detach()) == 0.0 and hits == [0, 0]
    assert all(p.grad is not None and p.grad.eq(0).all() for p in NextNHead.parameters(head))


def test_padding_is_never_a_label() -> None:
    segments = torch.tensor([[1, 1, 1, 0, 0, 0]])
    assert counts(torch.ones(1, 6), segments, 2, "all") == [1, 0]


def test_weights_of_depths() -> None:
    assert depth_weights(3, "equal", 0.5) == [1.0, 1.0, 1.0]
    assert depth_weights(3, "decay", 0.5) == [1.0, 0.5, 0.25]
    assert math.isclose(sum(depth_weights(2, "decay", 0.8)), 1.8)
