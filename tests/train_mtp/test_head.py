"""The head against arithmetic written out by hand, its index, and what a packed row may not do."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from harnessctl.train.mtp.head import NextNHead, following, full_names
from tests.train_mtp.conftest import VOCAB, hidden_of, make_llama, make_qwen


def head_of(model: PreTrainedModel, seed: int = 3) -> NextNHead:
    torch.manual_seed(seed)
    head = NextNHead(model)
    with torch.no_grad():  # norms of their own, so that one in the place of another shows
        for name, value in head.named_parameters():
            if "norm" in name:
                value.add_(torch.randn_like(value) * 0.3)
    return head


def row(*lengths: int, seed: int = 5) -> dict[str, torch.Tensor]:
    """Sequences of these lengths in one row."""
    generator = torch.Generator().manual_seed(seed)
    return {
        "ids": torch.randint(2, VOCAB, (1, sum(lengths)), generator=generator),
        "segments": torch.tensor([[n + 1 for n, length in enumerate(lengths) for _ in range(length)]]),
        "positions": torch.tensor([[p for length in lengths for p in range(length)]]),
    }


def test_the_shared_parts_are_not_the_heads(llama: Any) -> None:
    head = NextNHead(llama)
    assert not {id(p) for p in head.parameters()} & {id(p) for p in llama.parameters()}
    assert not any(
        "embed" in name.replace("pre_fc_norm_embedding", "") or "lm_head" in name for name in head.state_dict()
    )
    assert head.logits(torch.eye(32)).equal(llama.lm_head.weight.T)


def test_names_of_the_family(qwen: Any) -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in full_names(NextNHead(qwen).state_dict()).items()}
    layer = "mtp.layers.0."
    assert shapes == {
        "mtp.fc.weight": (32, 64),
        "mtp.pre_fc_norm_embedding.weight": (32,),
        "mtp.pre_fc_norm_hidden.weight": (32,),
        "mtp.norm.weight": (32,),
        layer + "input_layernorm.weight": (32,),
        layer + "post_attention_layernorm.weight": (32,),
        layer + "self_attn.q_proj.weight": (128, 32),  # queries and their gate
        layer + "self_attn.k_proj.weight": (32, 32),
        layer + "self_attn.v_proj.weight": (32, 32),
        layer + "self_attn.o_proj.weight": (32, 64),
        layer + "self_attn.q_norm.weight": (16,),
        layer + "self_attn.k_norm.weight": (16,),
        layer + "mlp.gate.weight": (4, 32),
        layer + "mlp.experts.gate_up_proj": (4, 48, 32),
        layer + "mlp.experts.down_proj": (4, 32, 24),
        layer + "mlp.shared_expert.gate_proj.weight": (20, 32),
        layer + "mlp.shared_expert.up_proj.weight": (20, 32),
        layer + "mlp.shared_expert.down_proj.weight": (32, 20),
        layer + "mlp.shared_expert_gate.weight": (1, 32),
    }


def test_norms_are_the_targets_own(llama: Any, qwen: Any) -> None:
    """A new norm changes no direction: weight 1 where it is multiplied with, 0 where 1 is added."""
    x = torch.randn(3, 32)
    plain = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    for model, weight in ((llama, 1.0), (qwen, 0.0)):
        norm = NextNHead(model).pre_fc_norm_hidden
        assert norm.weight.eq(weight).all()
        assert torch.allclose(norm(x), plain, atol=1e-5)
        with torch.no_grad():
            norm.weight.add_(0.5)
        assert torch.allclose(norm(x), plain * 1.5, atol=1e-5)


def naive_llama(head: NextNHead, model: Any, ids: list[int], hidden: torch.Tensor, t: int, depths: int) -> list[Any]:
    """g of each depth for the one position t, a token at a time, as an engine drafts: keys of depth 0 for 0..t, then one
    more for each step."""
    layer: Any = head.layers[0]
    eps, width, heads, groups = model.config.rms_norm_eps, 8, 4, 2
    embed = model.model.embed_tokens.weight

    def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return weight * x / torch.sqrt((x * x).mean() + eps)

    def turned(x: torch.Tensor, position: int) -> torch.Tensor:
        angles = position * model.config.rope_parameters["rope_theta"] ** (-torch.arange(0, width, 2) / width)
        cos, sin = angles.cos().repeat(2), angles.sin().repeat(2)
        return x * cos + torch.cat([-x[width // 2 :], x[: width // 2]]) * sin

    def entry(token: int, state: torch.Tensor) -> torch.Tensor:
        parts = [norm(embed[token], head.pre_fc_norm_embedding.weight), norm(state, head.pre_fc_norm_hidden.weight)]
        return head.fc.weight @ torch.cat(parts)

    keys: list[list[torch.Tensor]] = []
    values: list[list[torch.Tensor]] = []

    def step(x: torch.Tensor, position: int) -> torch.Tensor:
        y = norm(x, layer.input_layernorm.weight)
        q = (layer.self_attn.q_proj.weight @ y).view(heads, width)
        k = (layer.self_attn.k_proj.weight @ y).view(groups, width)
        v = (layer.self_attn.v_proj.weight @ y).view(groups, width)
        keys.append([turned(part, position) for part in k])
        values.append(list(v))
        said = []
        for number in range(heads):
            group = number // (heads // groups)
            query = turned(q[number], position)
            scores = torch.stack([query @ past[group] / math.sqrt(width) for past in keys]).softmax(0)
            said.append(sum(score * past[group] for score, past in zip(scores, values, strict=True)))
        x = x + layer.self_attn.o_proj.weight @ torch.cat(said)
        y = norm(x, layer.post_attention_layernorm.weight)
        gate = layer.mlp.gate_proj.weight @ y
        x = x + layer.mlp.down_proj.weight @ (gate * gate.sigmoid() * (layer.mlp.up_proj.weight @ y))
        return norm(x, head.norm.weight)

    for s in range(t):
        step(entry(ids[s + 1], hidden[s]), s)
    found, state = [], hidden[t]
    for depth in range(depths):
        state = step(entry(ids[t + 1 + depth], state), t + depth)
        found.append(state)
    return found


def test_forward_is_what_a_naive_one_computes(llama: Any) -> None:
    head, given = head_of(llama), row(9)
    hidden = hidden_of(llama, given["ids"])
    with torch.no_grad():
        outputs = head(hidden, **given, depths=3)
        for t in (0, 2, 5):
            expected = naive_llama(head, llama, given["ids"][0].tolist(), hidden[0], t, 3)
            for depth in range(3):
                assert torch.allclose(outputs[depth][0, t], expected[depth], atol=2e-5), (t, depth)


def moved(before: torch.Tensor, after: torch.Tensor) -> bool:
    """More than by rounding: experts share matrix products with other positions."""
    return not torch.allclose(before, after, atol=1e-5)


@pytest.mark.parametrize("make", [make_llama, make_qwen])
@pytest.mark.parametrize("embeddings", ["teacher", "argmax"])
def test_depth_k_sees_h_t_and_the_tokens_up_to_its_own(make: Any, embeddings: Any) -> None:
    """Depth k at t moves with h_t and y_{t+1} .. y_{t+1+k} (argmax: y_{t+1}), and with nothing later."""
    model = make()
    head, given, t = head_of(model), row(10), 3
    hidden = hidden_of(model, given["ids"])
    with torch.no_grad():
        before = head(hidden, **given, depths=3, embeddings=embeddings)
        for place in range(10):
            ids = given["ids"].clone()
            ids[0, place] = 2 + (ids[0, place] - 1) % (VOCAB - 2)
            after = head(hidden, ids, given["segments"], given["positions"], 3, embeddings)
            for depth in range(3):
                last = t + 1 + (depth if embeddings == "teacher" else 0)
                is_seen = 1 <= place <= last
                assert moved(before[depth][0, t], after[depth][0, t]) == is_seen, (place, depth)
            states = hidden.clone()
            states[0, place] += 1.0
            after = head(states, **given, depths=3, embeddings=embeddings)
            for depth in range(3):
                assert moved(before[depth][0, t], after[depth][0, t]) == (place <= t), (place, depth)


@pytest.mark.parametrize("make", [make_llama, make_qwen])
@pytest.mark.parametrize("embeddings", ["teacher", "argmax"])
def test_packed_equals_unpacked(make: Any, embeddings: Any) -> None:
    model = make()
    head, packed = head_of(model), row(7, 4, 6)
    parts = [slice(0, 7), slice(7, 11), slice(11, 17)]
    hidden = torch.cat([hidden_of(model, packed["ids"][:, part]) for part in parts], dim=1)
    with torch.no_grad():
        together = head(hidden, **packed, depths=3, embeddings=embeddings)
        for part in parts:
            alone = head(hidden[:, part], **{k: v[:, part] for k, v in packed.items()}, depths=3, embeddings=embeddings)
            for depth in range(3):
                assert torch.allclose(together[depth][:, part], alone[depth], atol=1e-5)


def test_no_gradient_crosses_from_one_sequence_to_another(llama: Any) -> None:
    head, packed = head_of(llama), row(6, 5)
    hidden = torch.randn(1, 11, 32, requires_grad=True)
    outputs = head(hidden, **packed, depths=3)
    sum(output[:, 6:].square().sum() for output in outputs).backward()
    assert hidden.grad is not None
    assert hidden.grad[:, :6].eq(0).all() and hidden.grad[:, 6:].ne(0).any()


def test_what_follows_ends_with_the_sequence() -> None:
    ids, segments = torch.tensor([[5, 6, 7, 8, 9]]), torch.tensor([[1, 1, 1, 2, 2]])
    assert following(ids, segments, 1).tolist() == [[6, 7, 0, 9, 0]]
    assert following(ids, segments, 2).tolist() == [[7, 0, 0, 0, 0]]
    assert following(ids, segments, 9).tolist() == [[0, 0, 0, 0, 0]]


def test_argmax_embeddings_are_the_heads_own_tokens(llama: Any) -> None:
    """Where the sequence goes on as the head would have it, both kinds of embedding are one."""
    head, given = head_of(llama), row(8)
    hidden = hidden_of(llama, given["ids"])
    with torch.no_grad():
        t = 3
        drafted = head.argmax(head(hidden, **given, depths=1)[0])[0, t]
        ids = given["ids"].clone()
        ids[0, t + 2] = drafted
        teacher = head(hidden, ids, given["segments"], given["positions"], 2, "teacher")
        argmax = head(hidden, ids, given["segments"], given["positions"], 2, "argmax")
    assert torch.allclose(teacher[1][0, t], argmax[1][0, t], atol=1e-6)


@pytest.mark.parametrize("make", [make_llama, make_qwen])
@pytest.mark.parametrize("embeddings", ["teacher", "argmax"])
def test_depths_are_the_same_where_they_are_computed_at_some_places_alone(make: Any, embeddings: Any) -> None:
    model = make()
    head, packed = head_of(model), row(7, 5)
    hidden = torch.cat([hidden_of(model, packed["ids"][:, :7]), hidden_of(model, packed["ids"][:, 7:])], dim=1)
    drafted = torch.zeros(1, 12, dtype=torch.bool)
    drafted[0, [2, 3, 8]] = True
    with torch.no_grad():
        whole = head(hidden, **packed, depths=3, embeddings=embeddings)
        some = head(hidden, **packed, depths=3, embeddings=embeddings, drafted=drafted)
        none = head(hidden, **packed, depths=2, embeddings=embeddings, drafted=torch.zeros_like(drafted))
    assert torch.allclose(some[0], whole[0], atol=1e-5) and torch.allclose(none[0], whole[0], atol=1e-5)
    for depth in (1, 2):
        assert torch.allclose(some[depth][drafted], whole[depth][drafted], atol=1e-5)
        assert some[depth][~drafted].eq(0).all()
