"""Small checkpoints, written here: the tiny qwen3_5_moe of the tests and a tokenizer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from harnessctl.checkpoint.head import head_shapes
from harnessctl.records.lineage import Lineage

Tensors = dict[str, torch.Tensor]

TEXT: dict[str, Any] = {
    "model_type": "qwen3_5_moe_text",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_experts": 3,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 24,
    "vocab_size": 40,
    "attn_output_gate": True,
    "layer_types": ["linear_attention", "full_attention"],
    "mtp_num_hidden_layers": 1,
    "mtp_use_dedicated_embeddings": False,
    "tie_word_embeddings": False,
}
#: As Qwen3.6 has it: the language model's config nested beside the vision tower's.
CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "model_type": "qwen3_5_moe",
    "text_config": TEXT,
    "tie_word_embeddings": False,
}
DENSE: dict[str, Any] = {
    "model_type": "qwen3_5_text",
    **{key: TEXT[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")},
    "intermediate_size": 48,
    "vocab_size": 40,
    "mtp_num_hidden_layers": 1,
    "tie_word_embeddings": True,
}


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


def drawn(shapes: Mapping[str, Iterable[int]], *, seed: int = 0, dtype: torch.dtype = torch.bfloat16) -> Tensors:
    """Random tensors of the shapes."""
    made = torch.Generator().manual_seed(seed)
    return {name: torch.randn(*shape, generator=made).to(dtype) for name, shape in shapes.items()}


def policy_tensors(seed: int = 1) -> Tensors:
    """A few tensors by the names of Qwen3.6; one is float32 and one a scalar, as some checkpoints have."""
    language = "model.language_model."
    shapes = {
        f"{language}embed_tokens.weight": (40, 32),
        f"{language}layers.0.linear_attn.in_proj_qkv.weight": (64, 32),
        f"{language}layers.1.self_attn.q_proj.weight": (64, 32),
        f"{language}layers.1.mlp.experts.gate_up_proj": (3, 32, 32),
        f"{language}norm.weight": (32,),
        "model.visual.patch_embed.proj.weight": (8, 12),
        "lm_head.weight": (40, 32),
    }
    exact = {f"{language}layers.0.linear_attn.A_log": torch.linspace(0, 1, 4), "scale": torch.tensor(2.0)}
    return drawn(shapes, seed=seed) | exact


def head_of(config: Mapping[str, Any] = CONFIG, form: Any = "fused", seed: int = 2) -> Tensors:
    return drawn(head_shapes(config, form=form), seed=seed)


def write_checkpoint(
    folder: Path, tensors: Tensors, *, config: Mapping[str, Any] = CONFIG, shards: int = 1, indent: int = 2
) -> Path:
    """A model folder: the tensors dealt out over `shards` files, a config, a tokenizer and a few files beside."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_document()))
    (folder / "chat_template.jinja").write_text("{{ messages }}\n")
    (folder / "extra").mkdir()
    (folder / "extra" / "notes.txt").write_text("kept")
    metadata = {"format": "pt"}
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata)
        return folder
    names = list(tensors)
    weight_map: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        mine = names[number::shards]
        save_file({name: tensors[name] for name in mine}, folder / file, metadata)
        weight_map |= dict.fromkeys(mine, file)
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=indent))
    return folder


def tokenizer_document(**changes: Any) -> dict[str, Any]:
    pieces = ["a", "b", "c", "ab", "abc"]
    added = {"id": 5, "content": "<|im_end|>", "special": True, "lstrip": False, "rstrip": False, "normalized": False}
    model = {
        "type": "BPE",
        "unk_token": None,
        "byte_fallback": False,
        "vocab": {piece: number for number, piece in enumerate(pieces)},
        "merges": [["a", "b"], ["ab", "c"]],
    }
    return {"version": "1.0", "added_tokens": [added], "normalizer": None, "model": model, **changes}


def file_digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def some_lineage(**changes: Any) -> Lineage:
    return Lineage(**{"stage": "sft", "base": "b" * 64, "parent": "p" * 64, **changes})


class Killed(BaseException):
    """The process ends here."""


class Dying:
    """Calls that change the disk, of which the one with number `call` (from 1) fails and all after it: what a process
    leaves behind that is killed there."""

    def __init__(self, call: int) -> None:
        self._left = call

    def __call__(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left <= 0:
                raise Killed
            return real(*arguments, **options)

        return made
