"""Making: a new small model that knows of a larger one which words are alike, and nothing else.

What always holds: a function of the source, the texts, the shape and the seed; the folder appears whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson
import torch
from tokenizers import Tokenizer
from torch import Tensor

from harnessctl.checkpoint.folder import copy_rest, staged
from harnessctl.checkpoint.layout import read_config, read_document, weights_digest
from harnessctl.checkpoint.lineage import write_lineage
from harnessctl.checkpoint.shards import write_shard
from harnessctl.checkpoint.tokenizer import tokenizer_digest
from harnessctl.decode.weights import read_model
from harnessctl.errors import CheckpointError
from harnessctl.records.lineage import Lineage
from harnessctl.storage import write_atomic
from harnessctl.train.base.circuits import Circuits
from harnessctl.train.base.config import MakeConfig
from harnessctl.train.base.vocabulary import as_tokenizer, make_vocabulary

#: Of the source: other forms of its tokenizer, which would speak of other tokens, and a template that is not trained in.
_NOT_COPIED = ("vocab.json", "merges.txt", "tokenizer.model", "added_tokens.json", "chat_template.jinja")
_IDS = ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "decoder_start_token_id")
#: What stands before a word whose meaning is asked for, and how many are asked for at once.
_BEFORE, _AT_ONCE = " the ", 256
_NORMS = ("input_layernorm", "post_attention_layernorm")


def make_model(
    source: Path, target: Path, shape: MakeConfig, *, texts: Iterable[str], seed: int, lineage: Lineage
) -> None:
    """Write a model of `shape` to the new folder `target`: a Llama with tied embeddings, in float32, whose tokens are made
    of `texts`. `lineage` has no digests of weights and tokenizer yet.

    CheckpointError where the source cannot be read or the shape has no room; StorageError when the disk refuses.
    """
    whole, tokenizer = read_model(source, torch.float32)
    theirs = read_document(source / "tokenizer.json", "tokenizer")
    document = make_vocabulary(theirs, texts, size=shape.vocabulary.size)
    mine = as_tokenizer(document)
    meanings = token_meanings(
        whole, tokenizer, [mine.decode([number], skip_special_tokens=False) for number in range(mine.get_vocab_size())]
    )
    added = mine.get_vocab(with_added_tokens=True)
    new = {token["id"]: added[token["content"]] for token in theirs.get("added_tokens") or []}
    files = {
        "config.json": _renumbered(llama_config(shape, len(meanings), read_config(source)), new),
        "tokenizer.json": document,
    }
    for name in ("generation_config.json", "tokenizer_config.json"):
        if (source / name).is_file():
            files[name] = _renumbered(read_document(source / name, "config"), new)
    _write(source, target, files, tensors_of(shape, meanings, seed=seed), lineage)


@torch.no_grad()
def token_meanings(model: Any, tokenizer: Tokenizer, texts: Sequence[str]) -> Tensor:
    """(texts, width of `model`): what `model` makes of each text as a word behind another, a fifth of its layers up.

    There words of one matter are nearer to one another than in its embeddings, which hardly tell (docs/log.md); tokens
    embedded so by a larger model are Model2Vec's idea. Of `model` only those layers are left.
    """
    decoder = model.get_decoder()
    if not hasattr(decoder, "layers"):
        raise CheckpointError(
            f"{type(model).__name__} has no list of layers, and cannot tell which words are alike",
            hint="give a decoder such as Llama's or Qwen's",
        )
    decoder.layers = decoder.layers[: math.ceil(len(decoder.layers) / 5)]
    rows = [tokenizer.encode(_BEFORE + text.lstrip(" "), add_special_tokens=False).ids for text in texts]
    found = torch.empty(len(rows), model.config.get_text_config().hidden_size)
    by_length = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    for begin in range(0, len(rows), _AT_ONCE):
        places = by_length[begin : begin + _AT_ONCE]
        ends = torch.tensor([len(rows[place]) - 1 for place in places])
        ids = torch.zeros(len(places), int(ends.max()) + 1, dtype=torch.long)
        for row, place in enumerate(places):
            ids[row, : len(rows[place])] = torch.tensor(rows[place])
        states = decoder(input_ids=ids, use_cache=False).last_hidden_state
        found[places] = states[torch.arange(len(places)), ends].float()
    return found


def tensors_of(shape: MakeConfig, meanings: Tensor, *, seed: int) -> dict[str, Tensor]:
    """The tensors of a new Llama, by name; `meanings` (vocabulary, any width) say which tokens are alike."""
    generator = torch.Generator().manual_seed(seed)
    circuits = Circuits.of(shape, generator) if shape.circuits else None

    def normal(*size: int, scale: float = 0.02) -> Tensor:
        return torch.randn(*size, generator=generator) * scale

    inner = shape.heads * shape.head_dim
    # What is added to the stream is scaled by the number of additions [Radford et al., 2019].
    added = 0.02 / math.sqrt(2 * shape.layers)
    found = {"model.norm.weight": torch.ones(shape.width)}
    for layer in range(shape.layers):
        place = f"model.layers.{layer}"
        found |= {f"{place}.{name}.weight": torch.ones(shape.width) for name in _NORMS}
        found |= {f"{place}.self_attn.{letter}_proj.weight": normal(inner, shape.width) for letter in "qkv"}
        found[f"{place}.self_attn.o_proj.weight"] = normal(shape.width, inner, scale=added)
        found |= {f"{place}.mlp.{name}_proj.weight": normal(shape.neurons, shape.width) for name in ("gate", "up")}
        found[f"{place}.mlp.down_proj.weight"] = normal(shape.width, shape.neurons, scale=added)
    if circuits is None:
        found["model.embed_tokens.weight"] = normal(len(meanings), shape.width)
    else:
        found["model.embed_tokens.weight"] = circuits.embeddings(meanings)
        circuits.write(found)
    return found


def llama_config(shape: MakeConfig, size: int, source: Mapping[str, Any]) -> dict[str, Any]:
    """config.json of a model with `size` tokens; special ones are numbered as in `source`, another model's."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.neurons,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_theta},
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "dtype": "float32",
        "vocab_size": size,
        **{key: source[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id") if key in source},
    }


def _renumbered(config: Mapping[str, Any], new: Mapping[int, int]) -> dict[str, Any]:
    """A config in which special tokens have their `new` numbers; one that is not among them becomes null."""
    out = dict(config)
    for key in _IDS:
        value = config.get(key)
        if isinstance(value, int):
            out[key] = new.get(value)
        elif isinstance(value, list):
            out[key] = [new[number] for number in value if number in new]
    added = config.get("added_tokens_decoder")
    if isinstance(added, dict):
        out["added_tokens_decoder"] = {
            str(new[int(number)]): token for number, token in added.items() if int(number) in new
        }
    return out


def _write(
    source: Path, target: Path, files: Mapping[str, Any], tensors: Mapping[str, Tensor], lineage: Lineage
) -> None:
    """Write `tensors` and `files` as the checkpoint `target`, with licence and the like of `source`."""
    with staged(target) as folder:
        copy_rest(source, folder)
        for name in _NOT_COPIED:
            (folder / name).unlink(missing_ok=True)
        for name, value in files.items():
            write_atomic(folder / name, orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
        write_shard(folder / "model.safetensors", tensors)
        known = {"weights": weights_digest(folder), "tokenizer": tokenizer_digest(folder)}
        write_lineage(folder, msgspec.structs.replace(lineage, **known))
