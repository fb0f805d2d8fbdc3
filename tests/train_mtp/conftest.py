"""Tiny random policies, and sequences made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig
from transformers.utils import logging

from harnessctl.records.trajectory import TokenPath, Trajectory
from tests.decode.conftest import make_tokenizer

VOCAB = 61


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


def make_llama(seed: int = 0, **options: Any) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        **{
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 256,
            "bos_token_id": 1,
            "eos_token_id": 0,
            "initializer_range": 0.2,
            "tie_word_embeddings": False,
            **options,
        }
    )
    return LlamaForCausalLM(config).eval().requires_grad_(False)


def make_qwen(seed: int = 0, **options: Any) -> Qwen3_5MoeForCausalLM:
    """The architecture of Qwen3.6-35B-A3B: three layers of linear attention, one of full attention, experts."""
    torch.manual_seed(seed)
    config = Qwen3_5MoeTextConfig(
        **{
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "moe_intermediate_size": 24,
            "shared_expert_intermediate_size": 20,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "max_position_embeddings": 256,
            "eos_token_id": 0,
            "initializer_range": 0.1,
            "mtp_num_hidden_layers": 1,
            **options,
        }
    )
    return Qwen3_5MoeForCausalLM(config).eval().requires_grad_(False)


def hidden_of(model: PreTrainedModel, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state


@pytest.fixture(scope="session")
def llama() -> LlamaForCausalLM:
    return make_llama()


@pytest.fixture(scope="session")
def qwen() -> Qwen3_5MoeForCausalLM:
    return make_qwen()


# A toy policy says the same tokens over and over: each has one that follows it.
TOKENS = list(range(4, 40))


def cycle(seed: int) -> dict[int, int]:
    order = torch.randperm(len(TOKENS), generator=torch.Generator().manual_seed(seed)).tolist()
    return {TOKENS[a]: TOKENS[b] for a, b in zip(order, order[1:] + order[:1], strict=True)}


def said(follows: dict[int, int], first: int, length: int) -> list[int]:
    ids = [first]
    while len(ids) < length:
        ids.append(follows[ids[-1]])
    return ids


def teach(model: PreTrainedModel, follows: dict[int, int], steps: int = 60) -> None:
    """Train the policy until it says the cycle."""
    model.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rows = torch.tensor([said(follows, first, 10) for first in TOKENS[::3]])
    for _ in range(steps):
        logits = model(input_ids=rows, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.1, "the toy policy has not learnt its cycle"
    model.requires_grad_(False)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose policy goes round cycle 1."""
    return saved(tmp_path_factory.mktemp("toy") / "policy", toy_llama(1))


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory, toy: Path) -> Path:
    """The same policy after a training that made it go round cycle 2."""
    model = LlamaForCausalLM.from_pretrained(toy)
    teach(model, cycle(2))
    return saved(tmp_path_factory.mktemp("other") / "policy", model)


def toy_llama(seed: int) -> LlamaForCausalLM:
    model = make_llama(vocab_size=make_tokenizer().get_vocab_size(), initializer_range=0.1)
    teach(model, cycle(seed))
    return model


def saved(folder: Path, model: PreTrainedModel) -> Path:
    """A checkpoint folder, as a stage begins from it."""
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    make_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def rollouts(path: Path, follows: dict[int, int], count: int = 24, length: int = 12) -> Path:
    """What a policy that says `follows` did, three tokens of each being the prompt's."""
    lines = []
    for number in range(count):
        ids = said(follows, TOKENS[(number * 7) % len(TOKENS)], length)
        mask = [0, 0, 0] + [1] * (length - 3)
        lines.append(msgspec.json.encode(trajectory(number, (ids, mask))) + b"\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


def trajectory(number: int, *paths: tuple[list[int], list[int]]) -> Trajectory:
    return Trajectory(
        id=f"r{number}",
        bundle="b" * 64,
        harness="mini",
        loop="harness",
        model="tiny",
        request={},
        context={},
        limits={},
        started="2026-01-01T00:00:00Z",
        took_s=0.0,
        stop="replied",
        reply="",
        route="public",
        paths=[TokenPath(ids=ids, mask=mask, logprobs=[0.0] * len(ids)) for ids, mask in paths],
    )
