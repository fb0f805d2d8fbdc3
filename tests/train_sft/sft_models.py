"""Tiny random models and token sequences for the tests of training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from harnessctl.train.sft.rows import Tokens

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def tiny_tokenizer(texts: Sequence[str] = (), *, vocabulary: int = 700) -> Tokenizer:
    """Bytes, pieces that are frequent in `texts`, and ChatML's special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def tiny_llama(*, vocabulary: int = 64, seed: int = 0, context: int = 4096) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.2,
    )
    return LlamaForCausalLM(config).eval()


def sequences(*lengths: int, vocabulary: int = 64, seed: int = 0) -> list[Tokens]:
    """Random sequences, of whose tokens about half are learnt."""
    generator = torch.Generator().manual_seed(seed)

    def draw(high: int, length: int) -> torch.Tensor:
        return torch.randint(high, (length,), generator=generator, dtype=torch.int32)

    return [Tokens(draw(vocabulary, length), draw(2, length)) for length in lengths]
