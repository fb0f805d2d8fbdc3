"""A tiny model in the Hugging Face layout, with a byte-pair tokenizer that was trained on general items."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from harnessctl.data.general import draw
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.train.base.config import BaseConfig
from harnessctl.train.job import Job
from harnessctl.train.metrics import Metrics

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LAYERS = 4


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


def train_tokenizer(*, size: int = 600) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [message["content"] or "" for number in range(60) for message in draw(9, number).messages]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sorted(set(texts)), trainer)
    return tokenizer


def write_model(folder: Path, tokenizer: Tokenizer, *, seed: int = 0, **options: Any) -> Path:
    torch.manual_seed(seed)
    config = LlamaConfig(
        **{
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 2048,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 2,
            "tie_word_embeddings": True,
            **options,
        }
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_tokenizer()


@pytest.fixture(scope="session")
def source(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("source") / "whole", tokenizer)


def base_config(**options: Any) -> BaseConfig:
    import msgspec

    plain = {
        "model": {"name": "tiny", "device": "cpu", "dtype": "float32"},
        "loop": {"steps": 3, "lr": 0.003, "save_every": 1},
        "tokens_per_step": 1500,
        "micro_tokens": 1000,
        "measure": {"every": 2, "items": 1},
        "tasks": {"shares": {"copy": 1.0, "lookup": 1.0, "call": 1.0}, "entries": [2, 4]},
        **options,
    }
    return msgspec.convert(plain, BaseConfig)


@pytest.fixture
def make_job(source: Path, tmp_path: Path) -> Callable[..., Job]:
    def make(*, folder: str = "run", start: Path = source, **options: Any) -> Job:
        path = tmp_path / folder
        return Job(
            root=tmp_path,
            folder=path,
            config=base_config(**options),
            bundle=None,
            judges={},
            start=start,
            metrics=Metrics(path, board=False),
            talk=lambda _: None,
            stage="base",
            recipe={"options": str(options)},
        )

    return make


@pytest.fixture(scope="session")
def encoder(tokenizer: Tokenizer) -> PromptEncoder:
    template = ChatTemplate()
    return PromptEncoder(template, TokenCodec(tokenizer, end=template.end))
