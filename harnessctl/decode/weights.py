"""Weights: a model folder in memory, ready to decode.

Only safetensors are read, no code of the folder is run and nothing is fetched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from harnessctl.decode.int8 import quantise_linears
from harnessctl.errors import UsageError

Dtype = Literal["auto", "float32", "bfloat16", "int8"]


class Weights(msgspec.Struct, kw_only=True):
    """A causal language model and its tokenizer. `ends` are the ids that the model itself ends a text with."""

    model: PreTrainedModel
    tokenizer: Tokenizer
    ends: list[int]
    vocab_size: int
    context_length: int

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return self.model.device


def load_weights(folder: Path, *, dtype: Dtype = "auto", device: str | None = None) -> Weights:
    """Read the model in `folder`. UsageError when it cannot be read or `dtype` does not go with the device.

    `device` null: CUDA where there is one. `auto`: bfloat16 on CUDA, float32 elsewhere (bfloat16 is far slower on a
    CPU without instructions for it).
    """
    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if dtype == "int8" and where.type != "cpu":
        raise UsageError(f"dtype int8 is for the CPU; got device {where.type}; allowed auto, float32, bfloat16")
    if dtype == "auto":
        dtype = "bfloat16" if where.type == "cuda" else "float32"
    logging.disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.bfloat16 if dtype == "bfloat16" else torch.float32,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
        )
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # transformers and tokenizers raise what they like for a folder that is not right
        raise UsageError(f"cannot load the model in {folder}: {error}") from error
    model = model.to(where).eval()
    if dtype == "int8":
        quantise_linears(model)
    return from_parts(model, tokenizer)


def from_parts(model: Any, tokenizer: Tokenizer) -> Weights:
    """Weights of a model and a tokenizer that are in memory already."""
    ends = model.generation_config.eos_token_id if model.generation_config is not None else model.config.eos_token_id
    return Weights(
        model=model,
        tokenizer=tokenizer,
        ends=[ends] if isinstance(ends, int) else list(ends or ()),
        vocab_size=model.config.vocab_size,
        context_length=getattr(model.config, "max_position_embeddings", None) or 1 << 30,
    )
