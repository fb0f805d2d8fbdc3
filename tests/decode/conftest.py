"""A two-layer random model and a byte-level tokenizer, made here: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from harnessctl.decode.local import LocalModel
from harnessctl.decode.weights import Weights, from_parts

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def make_tokenizer(*, added: tuple[str, ...] = ()) -> Tokenizer:
    """Bytes, a few merges, ChatML's special tokens, and `added` tokens that are not marked special."""
    pieces = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges = [("t", "o"), ("to", "o"), ("too", "l"), ("c", "a"), ("ca", "l"), ("cal", "l"), ('"', ":"), ("{", '"')]
    pieces += [left + right for left, right in merges]
    tokenizer = Tokenizer(models.BPE(vocab={piece: index for index, piece in enumerate(pieces)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in added])
    return tokenizer


def make_llama(tokenizer: Tokenizer, *, seed: int = 0, context: int = 2048) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size() + 5,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=1,
        eos_token_id=0,
        initializer_range=0.2,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return make_tokenizer()


@pytest.fixture(scope="session")
def weights(tokenizer: Tokenizer) -> Weights:
    return from_parts(make_llama(tokenizer), tokenizer)


@pytest.fixture
def local(weights: Weights) -> Iterator[Callable[..., LocalModel]]:
    """Makes models over the same weights; their threads end with the test."""
    made: list[LocalModel] = []

    def make(given: Weights = weights, **options: Any) -> LocalModel:
        made.append(LocalModel(given, name="tiny", **options))
        return made[-1]

    yield make
    for model in made:
        model._worker.shutdown(wait=True)


def function_tool(name: str, parameters: dict[str, Any], description: str = "Does it.") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


LINK = {
    "type": "object",
    "properties": {"link": {"type": "integer", "minimum": 1, "maximum": 99}},
    "required": ["link"],
}
SKILL = {"type": "object", "properties": {"skill": {"enum": ["item-qa", "闲聊"]}}, "required": ["skill"]}
TOOLS = [
    function_tool("get_product", LINK, "Looks a product up."),
    function_tool("load_skill", SKILL, "Loads a skill."),
]
