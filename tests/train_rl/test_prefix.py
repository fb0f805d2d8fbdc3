"""A shared beginning computed once: the same log-probabilities and gradients as of paths read one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen3Config, Qwen3ForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from harnessctl.train import forest
from harnessctl.train.forest import Tree, cannot_share, forest_attention
from harnessctl.train.rl import prefix
from harnessctl.train.rl.paths import Path, Said, shared_length
from harnessctl.train.rl.prefix import Reader, padded_rows, probe, read, read_nothing, tree_rows

CPU = torch.device("cpu")
SIZES: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
}


def llama() -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES)).eval()


def qwen3() -> Any:
    torch.manual_seed(0)
    return Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=8)).eval()


def qwen3_moe() -> Any:
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(0)
    config = Qwen3MoeConfig(**SIZES, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
    return Qwen3MoeForCausalLM(config).eval()


def path(ids: list[int], places: list[int]) -> Path:
    return Path(ids=ids, places=places, advantages=[1.0] * len(places), sampled=[0.0] * len(places))


def group(prompt: int = 20, *, seed: int = 1) -> list[Path]:
    """Four rollouts of one prompt, unlike in length; what the harness put in lies between what was said."""
    draw = random.Random(seed)
    shared = [draw.randrange(64) for _ in range(prompt)]
    out = []
    for length in (3, 9, 1, 14):
        ids = shared + [draw.randrange(64) for _ in range(length)]
        places = [p for p in range(prompt, len(ids)) if p < prompt + 2 or draw.random() < 0.7]
        out.append(path(ids, places))
    return out


def answers(model: Any, paths: list[Path], rows: Any, temperature: float = 1.0) -> tuple[Any, dict[str, torch.Tensor]]:
    said = Said.of(paths, CPU)
    found = read(model, rows, said.ids, temperature=temperature)
    weights = torch.linspace(-1, 1, len(said.ids))
    model.zero_grad()
    (found.log_probs * weights).sum().backward()
    return found, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("make", [llama, qwen3, qwen3_moe])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_shared_equals_padded(make: Callable[[], Any], temperature: float) -> None:
    model, paths = make(), group()
    padded, wanted = answers(model, paths, padded_rows(paths, CPU), temperature)
    reader = Reader.open(model, lambda _: None)
    assert reader.shares
    rows = reader.rows(paths, CPU)
    assert rows.size == 20 + sum(len(p.read) - 20 for p in paths)
    shared, gradients = answers(model, paths, rows, temperature)
    torch.testing.assert_close(shared.log_probs, padded.log_probs, atol=1e-4, rtol=0)
    torch.testing.assert_close(shared.entropy, padded.entropy, atol=1e-4, rtol=0)
    assert gradients.keys() == wanted.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, wanted[name], atol=1e-4, rtol=0)


def test_a_large_vocabulary_is_scored_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    model, paths = llama(), group()
    whole, wanted = answers(model, paths, padded_rows(paths, CPU), 0.7)
    monkeypatch.setattr(prefix, "LOGITS_AT_ONCE", 64 * 5)
    pieces, gradients = answers(model, paths, padded_rows(paths, CPU), 0.7)
    torch.testing.assert_close(pieces.log_probs, whole.log_probs)
    torch.testing.assert_close(pieces.entropy, whole.entropy)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, wanted[name], atol=1e-5, rtol=1e-4)


def test_padded_equals_one_by_one() -> None:
    model, paths = llama(), group()
    together = read(model, padded_rows(paths, CPU), Said.of(paths, CPU).ids).log_probs
    alone = []
    for one in paths:
        logits = model(torch.tensor([one.ids])).logits[0].log_softmax(-1)
        alone += [logits[place - 1, one.ids[place]] for place in one.places]
    torch.testing.assert_close(together, torch.stack(alone), atol=1e-5, rtol=0)


def test_the_entropy_is_that_of_the_distribution() -> None:
    model, one = llama(), path([1, 2, 3, 4], [2, 3])
    logits = model(torch.tensor([one.ids])).logits[0, 1:3].div(0.5).log_softmax(-1)
    found = read(model, padded_rows([one], CPU), Said.of([one], CPU).ids, temperature=0.5)
    torch.testing.assert_close(found.entropy, -(logits.exp() * logits).sum(-1), atol=1e-5, rtol=0)
    assert not found.entropy.requires_grad


@pytest.mark.parametrize(
    "paths",
    [
        [path([5, 6, 7, 8], [2, 3])],  # alone
        [path([5, 6, 7, 8], [2, 3])] * 2,  # twice the same
        [
            path([5, 6, 7, 8], [1, 2, 3]),
            path([5, 6, 7, 8, 9, 1], [1, 5]),
        ],  # said within what is shared; one is the other's beginning
        [path([5, 6, 7], [2]), path([8, 9, 7], [1, 2])],  # nothing shared
        [path([5, 6, 7, 8], [3]), path([5, 6, 7, 9], [3])],  # only the last token differs: no continuation is read
    ],
)
def test_odd_groups(paths: list[Path]) -> None:
    model = qwen3()
    padded, wanted = answers(model, paths, padded_rows(paths, CPU))
    reader = Reader.open(model, lambda _: None)
    shared, gradients = answers(model, paths, reader.rows(paths, CPU))
    torch.testing.assert_close(shared.log_probs, padded.log_probs, atol=1e-5, rtol=0)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, wanted[name], atol=1e-5, rtol=0)


def test_the_tree_is_what_its_dense_mask_says() -> None:
    torch.manual_seed(1)
    tree = Tree(3, (2, 4), CPU)
    dense = tree.dense()
    assert dense.int().tolist()[3] == [1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert dense.int().tolist()[8] == [1, 1, 1, 0, 0, 1, 1, 1, 1]
    query, key, value = torch.randn(1, 4, 9, 8), torch.randn(1, 2, 9, 8), torch.randn(1, 2, 9, 8)
    found, _ = forest_attention(torch.nn.Module(), query, key, value, None, forest=(tree,))
    keys, values = key.repeat_interleave(2, 1), value.repeat_interleave(2, 1)
    wanted = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=dense)
    torch.testing.assert_close(found, wanted.transpose(1, 2))


def test_no_tree_of_a_forest_sees_another() -> None:
    torch.manual_seed(2)
    trees = (Tree(3, (2, 4), CPU), Tree(5, (), CPU), Tree(0, (1, 2), CPU))
    size = sum(tree.size for tree in trees)
    query, key, value = torch.randn(1, 4, size, 8), torch.randn(1, 2, size, 8), torch.randn(1, 2, size, 8)
    found, _ = forest_attention(torch.nn.Module(), query, key, value, None, forest=trees)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        query,
        key.repeat_interleave(2, 1),
        value.repeat_interleave(2, 1),
        attn_mask=torch.block_diag(*(tree.dense() for tree in trees)),
    )
    torch.testing.assert_close(found, wanted.transpose(1, 2))


def test_what_is_shared_stops_before_the_last_token_that_was_said() -> None:
    assert shared_length(group(20)) == 20
    assert shared_length([path([1, 2, 3, 4], [3]), path([1, 2, 3, 9], [3])]) == 3
    assert shared_length([path([1, 2, 3], [2])]) == 2


def test_micro_batches_keep_to_the_budget_and_lose_nothing() -> None:
    paths = group(20)
    reader = Reader(shares=True)
    for budget in (1, 40, 1000):
        chunks = reader.chunks(paths, budget)
        assert sorted(len(p.ids) for chunk in chunks for p in chunk) == sorted(len(p.ids) for p in paths)
        assert all(len(chunk) == 1 or reader.size(chunk) <= budget for chunk in chunks)
    assert len(reader.chunks(paths, 1000)) == 1
    padded = Reader(shares=False).chunks(paths, 2 * 34)
    assert all(len(chunk) * max(len(p.read) for p in chunk) <= 2 * 34 for chunk in padded)


def test_a_path_joins_no_others_where_it_would_cost_more() -> None:
    long = list(range(20))
    paths = [path([*long, 1, 2], [21]), path([*long, 3, 4], [21]), path([0, 50, 51], [2])]
    chunks = Reader(shares=True).chunks(paths, 1000)
    assert sorted(len(chunk) for chunk in chunks) == [1, 2]


def test_sharding_gets_a_pass_for_nothing() -> None:
    model = llama()
    nothing = read_nothing(model, CPU)
    assert len(nothing.log_probs) == 0
    nothing.nothing.backward()
    assert all(float(p.grad.abs().max()) == 0.0 for p in model.parameters() if p.grad is not None)


def test_models_that_read_in_order_are_padded_and_it_is_told() -> None:
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

    torch.manual_seed(0)
    model = Qwen3NextForCausalLM(
        Qwen3NextConfig(
            **SIZES,
            head_dim=8,
            linear_num_key_heads=2,
            linear_num_value_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=16,
            shared_expert_intermediate_size=16,
            layer_types=["linear_attention", "full_attention"],
        )
    ).eval()
    told: list[str] = []
    reader = Reader.open(model, told.append)
    assert not reader.shares
    assert "linear_attention" in told[0]
    paths = group()
    said = Said.of(paths, CPU)
    together = read(model, reader.rows(paths, CPU), said.ids).log_probs
    alone = torch.cat([read(model, reader.rows([p], CPU), Said.of([p], CPU).ids).log_probs for p in paths])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=0)


def test_sliding_windows_are_padded() -> None:
    model = MistralForCausalLM(MistralConfig(**SIZES, sliding_window=4))
    assert cannot_share(model) == "it has a sliding window"


def test_a_model_that_does_not_hand_the_tree_on_is_found_out() -> None:
    model = llama()  # its attention is still the stock one, which knows no tree
    assert "takes no tree" in (probe(model) or "")


def test_a_model_that_answers_otherwise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(*states: Any, forest: Any = None, **more: Any) -> Any:
        states = (*states[:4], states[4][..., :-1]) if forest is not None else states
        return sdpa_attention_forward(*states, **more)

    monkeypatch.setattr(forest, "forest_attention", blind)
    told: list[str] = []
    assert not Reader.open(llama(), told.append).shares
    assert "answers otherwise on a tree" in told[0]


def test_padding_on_request_is_told() -> None:
    told: list[str] = []
    assert not Reader.open(llama(), told.append, share=False).shares
    assert told == ["paths are padded, not shared: prefix=padded"]


def test_the_shared_row_is_laid_out_as_it_is_drawn() -> None:
    rows = tree_rows([path([1, 2, 3, 4, 5], [3, 4]), path([1, 2, 6, 7], [2, 3])], CPU)
    assert rows.ids.tolist() == [[1, 2, 3, 4, 6]]
    assert rows.positions.tolist() == [[0, 1, 2, 3, 2]]
    assert rows.tree is not None
    assert (rows.tree.prefix, rows.tree.branches) == (2, (2, 1))
    # 4 after 3, 5 after 4, 6 after the shared 2, 7 after 6
    assert rows.columns[rows.sources].tolist() == [2, 3, 1, 4]
