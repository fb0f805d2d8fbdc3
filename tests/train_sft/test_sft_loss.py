"""Only the policy's tokens are learnt; packed equals padded equals one at a time, in loss and in gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from sft_models import sequences, tiny_llama
from torch.nn import functional
from transformers import LlamaForCausalLM, Qwen3_5MoeTextConfig
from transformers.models.qwen3_5_moe.modeling_qwen3_5_moe import Qwen3_5MoeForCausalLM

from harnessctl.errors import TrainingError
from harnessctl.train.sft.rows import Rows, Tokens, packed, padded
from harnessctl.train.sft.token_loss import TokenLoss, cross_entropy


def gradients(model: LlamaForCausalLM) -> list[torch.Tensor]:
    found = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    return found


def naive(model: LlamaForCausalLM, samples: Sequence[Tokens]) -> torch.Tensor:
    """One sequence at a time, one token at a time."""
    total = torch.zeros(())
    for sample in samples:
        ids = sample.ids.long()
        logits = model(input_ids=ids[None]).logits[0]
        for at in range(1, len(ids)):
            if sample.mask[at]:
                total = total - functional.log_softmax(logits[at - 1], -1)[ids[at]]
    return total


def alike(samples: list[Tokens]) -> list[Tokens]:
    """The first four of 40 tokens begin with the same 33, of which some are learnt; so do the last two, with all of theirs;
    and one of those in between is the beginning of another."""
    samples[1].ids[:40] = samples[0].ids[:40]
    samples[4].ids[:33] = samples[0].ids[:33]
    samples[5].ids[:] = samples[0].ids[:39]
    samples[7].ids[:] = samples[5].ids[:]
    return samples


def assert_same(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [packed, padded])
@pytest.mark.parametrize("logits_at_once", [1 << 24, 5 * 64])
def test_packed_and_padded_are_as_one_at_a_time(rows: Callable[[Sequence[Tokens]], Rows], logits_at_once: int) -> None:
    model = tiny_llama()
    samples = alike(sequences(49, 44, 17, 1, 46, 39, 51, 39))
    wanted = naive(model, samples)
    wanted.backward()
    expected = gradients(model)
    module = TokenLoss(model, logits_at_once=logits_at_once)
    assert module.why_not_packed() is None
    found, right = module(rows(samples), cross_entropy)
    found.backward()
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    assert_same(gradients(model), expected)
    assert 0 <= int(right) <= sum(sample.weight for sample in samples)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch, as it compiles
def test_compiled_is_as_plain() -> None:
    model = tiny_llama()
    samples = sequences(49, 44, 17)
    wanted, right = TokenLoss(model)(padded(samples), cross_entropy)
    wanted.backward()
    expected = gradients(model)
    module = TokenLoss(model, is_compiled=True)
    module.check()
    found, seen = module(padded(samples), cross_entropy)
    found.backward()
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    assert_same(gradients(model), expected)
    assert int(seen) == int(right)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_cannot_be_compiled_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    module = TokenLoss(tiny_llama(), is_compiled=True)

    def no_compiler(**rows: Any) -> Any:
        raise RuntimeError("No working C++ compiler found\nand more")

    monkeypatch.setitem(module._compiled, "trunk", no_compiler)
    with pytest.raises(TrainingError, match=r"compile: No working C\+\+ compiler found$"):
        module.check()


def test_labels_are_the_masked_tokens_but_the_first() -> None:
    sample = Tokens(torch.tensor([5, 6, 7, 8]), torch.tensor([1, 0, 1, 1]))
    other = Tokens(torch.tensor([9, 3]), torch.tensor([1, 1]))
    rows = packed([sample, other])
    assert rows.labels.tolist() == [7, 8, 3]
    assert rows.at.tolist() == [1, 2, 4]
    assert rows.positions.tolist() == [[0, 1, 2, 3, 0, 1]]
    assert rows.trees is not None and [(tree.prefix, tree.branches) for tree in rows.trees] == [(4, ()), (2, ())]
    rows = padded([sample, other])
    assert rows.labels.tolist() == [7, 8, 3]
    assert rows.at.tolist() == [1, 2, 4]
    assert rows.ids.tolist() == [[5, 6, 7, 8], [9, 3, 0, 0]]
    assert sample.weight == 2 and other.weight == 1


def test_what_sequences_begin_with_alike_is_read_once() -> None:
    samples = alike(sequences(49, 44, 17, 1, 46, 39, 51, 39))
    rows = packed(samples)
    assert rows.trees is not None
    assert [(tree.prefix, tree.branches) for tree in rows.trees] == [
        (33, (16, 11, 13, 6, 6)),
        (17, ()),
        (1, ()),
        (51, ()),
    ]
    assert rows.ids.shape[1] == 154 < sum(map(len, samples))
    assert sorted(rows.labels.tolist()) == sorted(padded(samples).labels.tolist())


def test_what_the_harness_said_has_no_gradient() -> None:
    """A token that is not the policy's can be any other where nothing comes after it."""
    model = tiny_llama()
    ids = torch.tensor([3, 4, 5, 6], dtype=torch.int32)
    mask = torch.tensor([0, 1, 0, 0], dtype=torch.int32)
    loss, _ = TokenLoss(model)(padded([Tokens(ids, mask)]), cross_entropy)
    other, _ = TokenLoss(model)(padded([Tokens(torch.tensor([3, 4, 60, 61], dtype=torch.int32), mask)]), cross_entropy)
    torch.testing.assert_close(loss, other)


def test_nothing_is_a_zero_with_a_gradient_everywhere() -> None:
    model = tiny_llama()
    loss, _ = TokenLoss(model)(packed([]), cross_entropy)
    loss.backward()
    assert loss.item() == 0
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())


def test_a_model_that_scales_its_logits_is_refused() -> None:
    module = TokenLoss(tiny_llama())
    module.check()
    assert module.why_not_packed() is None

    def doubled(module: object, given: object, output: Any) -> None:
        output.logits = output.logits * 2

    module.model.register_forward_hook(doubled)
    with pytest.raises(TrainingError, match="output matrix"):
        module.check()


def test_a_running_state_is_not_packed() -> None:
    config = Qwen3_5MoeTextConfig(
        vocab_size=64,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        linear_num_value_heads=2,
        linear_num_key_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        moe_intermediate_size=8,
        shared_expert_intermediate_size=8,
        num_experts=2,
        num_experts_per_tok=1,
        layer_types=["linear_attention", "full_attention"],
    )
    torch.manual_seed(0)
    module = TokenLoss(Qwen3_5MoeForCausalLM(config).eval())
    module.check()
    assert "linear_attention" in (module.why_not_packed() or "")
    samples = sequences(7, 4, 9)
    found, _ = module(padded(samples), cross_entropy)
    torch.testing.assert_close(found, naive(module.model, samples), rtol=1e-4, atol=1e-4)
