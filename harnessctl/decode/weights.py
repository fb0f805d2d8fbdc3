"""Weights: a model folder in memory, ready to decode.

Only safetensors are read, no code of the folder is run and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from harnessctl.decode.int8 import quantise_linears
from harnessctl.errors import CheckpointError, UsageError

Dtype = Literal["auto", "float32", "bfloat16", "int8"]

#: Dtypes in which a weight can be no number.
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


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
    try:
        model, tokenizer = read_model(folder, torch.bfloat16 if dtype == "bfloat16" else torch.float32)
    except CheckpointError as error:
        raise UsageError(error.message, hint=error.hint) from error
    model = model.to(where).eval()
    if dtype == "int8":
        quantise_linears(model)
    return from_parts(model, tokenizer)


def read_model(folder: Path, dtype: torch.dtype) -> tuple[Any, Tokenizer]:
    """The model in `folder`, on the CPU, and its tokenizer.

    CheckpointError when they cannot be read, or cannot be used: weights that the model has and the folder has not (which
    transformers would draw at random), or of another shape; a weight that is no number; a token without a row.
    """
    logging.disable_progress_bar()
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # what it warns of is an error here
    try:
        model, told = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # transformers and tokenizers raise what they like for a folder that is not right
        why = " ".join(str(error).split("\n\n")[0].split())
        raise CheckpointError(f"cannot load the model in {folder}: {why}") from error
    finally:
        logging.set_verbosity(verbosity)
    if faults := [*_unlike(told), *_no_numbers(model), *_rowless(model, tokenizer)]:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise CheckpointError(
            f"cannot load the model in {folder}: {faults[0]}{more}",
            hint="copy the folder anew: its files are not those of one model",
        )
    return model, tokenizer


def _unlike(told: Mapping[str, Any]) -> Iterator[str]:
    """What transformers found to be missing, or of another shape."""
    for name in sorted(told["missing_keys"]):
        yield f"the weight {name} is missing"
    for name, got, wanted in sorted(told["mismatched_keys"]):
        yield f"the weight {name} has the shape {list(got)}; config.json wants {list(wanted)}"


def _no_numbers(model: Any) -> Iterator[str]:
    for name, weight in model.named_parameters():
        if weight.numel() and weight.dtype in _FLOATS:
            low, high = torch.aminmax(weight.detach())
            if not (torch.isfinite(low) and torch.isfinite(high)):
                yield f"the weight {name} holds NaN or infinity"


def _rowless(model: Any, tokenizer: Tokenizer) -> Iterator[str]:
    rows = model.get_input_embeddings().weight.shape[0]
    token, number = max(tokenizer.get_vocab().items(), key=lambda item: item[1], default=("", -1))
    if number >= rows:
        yield f"tokenizer.json gives {token!r} the id {number}; the model has {rows} rows"


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
