"""Conversion: a quantised GGUF file becomes a model folder with float32 safetensors, checked by loading it again."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.errors import HarnessctlError, StorageError

# Covers what a tokenizer gets wrong when a part of it is lost: digits, spaces, CJK, emoji, markup, special tokens.
PROBES = (
    "Price: 12345.67 yuan,  2 left\n\tLink 3?",
    "这款多少钱？有没有XL码",
    'ok 👍🏽 <tool_call>\n{"name": "get_product"}\n</tool_call>',
    "<|im_start|>user\nhi<|im_end|>",
)


class Converted(msgspec.Struct, kw_only=True):
    """What came out: number of parameters, their type, and the versions of the tools that made it."""

    parameters: int
    dtype: str
    versions: dict[str, str]


def convert_gguf(weights: Path, target: Path) -> Converted:
    """Write `weights` (GGUF) into the folder `target` as float32 safetensors, config and tokenizer.

    Loads the result again; HarnessctlError unless every tensor and the ids of the probe texts are identical.
    StorageError when the disk refuses.
    """
    import gguf  # noqa: F401  # transformers reads GGUF through it; imported here so that its absence is named
    import safetensors
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    # Reading GGUF draws a bar that this switch does not reach; the steps are told through `progress` already.
    with contextlib.redirect_stderr(io.StringIO()):
        model = AutoModelForCausalLM.from_pretrained(
            weights.parent,
            gguf_file=weights.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.float32,
            local_files_only=True,
        )
    tokenizer: Any = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name, local_files_only=True)
    try:
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    except safetensors.SafetensorError as error:
        raise StorageError(f"cannot write the weights to {target}: {error}") from error
    again = AutoModelForCausalLM.from_pretrained(target, use_safetensors=True, local_files_only=True)
    before, after = model.state_dict(), again.state_dict()
    altered = [name for name in before if name not in after or not torch.equal(before[name], after[name])]
    altered += [name for name in after if name not in before]
    if altered:
        raise HarnessctlError(
            f"the conversion of {weights.name} changed {len(altered)} tensors, {altered[0]} the first"
        )
    copy: Any = AutoTokenizer.from_pretrained(target, local_files_only=True)
    for text in PROBES:
        if tokenizer(text)["input_ids"] != copy(text)["input_ids"]:
            raise HarnessctlError(f"the tokenizer of {weights.name} reads {text!r} in another way once it is saved")
    return Converted(
        parameters=model.num_parameters(),
        dtype="float32",
        versions={"torch": str(torch.__version__), "transformers": transformers.__version__},
    )
