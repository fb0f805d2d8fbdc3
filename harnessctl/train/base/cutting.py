"""Cutting: a smaller model made of chosen layers and chosen rows of a larger one, to be healed by training.

What always holds: every tensor of the target is a tensor of the source, or chosen rows of one; the folder appears whole.
The hidden width stays, so that what the source's layers know of each other's outputs is not lost all at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import orjson
import safetensors
import torch

from harnessctl.checkpoint.folder import copy_rest, staged
from harnessctl.checkpoint.layout import weights_digest
from harnessctl.checkpoint.lineage import write_lineage
from harnessctl.checkpoint.shards import write_shard
from harnessctl.checkpoint.tokenizer import tokenizer_digest
from harnessctl.errors import CheckpointError
from harnessctl.records.lineage import Lineage
from harnessctl.storage import read_bytes, write_atomic
from harnessctl.train.base.vocabulary import Vocabulary, Wanted, prune_vocabulary

_LAYER = re.compile(r"(.*\blayers\.)(\d+)(\..*)")
#: A down projection's bias is of the hidden width and stays.
_FEED_FORWARD = re.compile(r"\.mlp\.(?:(?:gate|up)_proj\.(?:weight|bias)|(down)_proj\.weight)$")
_IDS = ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "decoder_start_token_id")


@dataclass(slots=True, frozen=True)
class Cut:
    """What to keep of a model. `layers` null: all. `vocabulary` null: the whole of it. `neurons` has the feed-forward
    neurons of each kept layer, as many of each; null: all."""

    layers: Sequence[int] | None = None
    vocabulary: Wanted | None = None
    neurons: Mapping[int, torch.Tensor] | None = None


def cut_model(source: Path, target: Path, cut: Cut, *, lineage: Lineage) -> None:
    """Write what `cut` keeps of the model in `source` to the new folder `target`, with `lineage`, of which the digests of
    weights and tokenizer are filled in.

    CheckpointError for layers that are not there or a model whose parts cannot be told; StorageError when the disk refuses.
    """
    config = _json(source / "config.json")
    layers = kept_layers(source, cut.layers)
    vocabulary = None
    document = _json(source / "tokenizer.json")
    if cut.vocabulary is not None:
        vocabulary = prune_vocabulary(document, cut.vocabulary)
    tensors = _tensors(source, layers, vocabulary, size=config["vocab_size"])
    if cut.neurons is not None:
        tensors = _narrowed(tensors, [cut.neurons[layer] for layer in layers])
        config = {**config, "intermediate_size": len(cut.neurons[layers[0]])}
    new = None if vocabulary is None else vocabulary.new_ids
    files = {
        "config.json": _config(config, layers, new),
        "tokenizer.json": document if vocabulary is None else vocabulary.document,
    }
    for name in ("generation_config.json", "tokenizer_config.json"):
        if (source / name).is_file():
            files[name] = _renumbered(_json(source / name), new)
    _write(source, target, files, tensors, lineage)


def kept_layers(source: Path, layers: Sequence[int] | None) -> list[int]:
    """The layers of the model in `source` that are kept: `layers`, or all. CheckpointError where it cannot be cut so."""
    config = _json(source / "config.json")
    count = config.get("num_hidden_layers")
    if not isinstance(count, int) or "vocab_size" not in config:
        raise CheckpointError(
            f"{source}: config.json names no num_hidden_layers or vocab_size; such a model cannot be cut"
        )
    chosen = list(range(count)) if layers is None else list(layers)
    if not chosen or chosen != sorted(set(chosen)) or chosen[0] < 0 or chosen[-1] >= count:
        raise CheckpointError(
            f"cut.layers: layers to keep must rise, from 0 to {count - 1} at most, in {source}; got {chosen}",
            hint="cut.layers=null keeps them all; cut=null cuts nothing",
        )
    return chosen


def _tensors(
    source: Path, layers: Sequence[int], vocabulary: Vocabulary | None, *, size: int
) -> dict[str, torch.Tensor]:
    """The kept tensors under their new names."""
    places = {str(old): new for new, old in enumerate(layers)}
    rows = None if vocabulary is None else torch.tensor(vocabulary.rows)
    found: dict[str, torch.Tensor] = {}
    with ExitStack() as stack:
        for path in sorted(source.glob("*.safetensors")):
            try:
                file = stack.enter_context(safetensors.safe_open(path, framework="pt"))
            except (OSError, safetensors.SafetensorError) as error:
                raise CheckpointError(f"cannot read {path}: {error}") from error
            for name in file.keys():  # noqa: SIM118  # not a mapping
                layer = _LAYER.fullmatch(name)
                if layer and layer[2] not in places:
                    continue
                new = f"{layer[1]}{places[layer[2]]}{layer[3]}" if layer else name
                tensor = file.get_tensor(name)
                is_table = not layer and tensor.shape[:1] == (size,) and (tensor.ndim == 2 or "head" in name)
                found[new] = tensor[rows].contiguous() if is_table and rows is not None else tensor
    if not any(_LAYER.fullmatch(name) for name in found):
        raise CheckpointError(f"{source}: no tensor has a name like `layers.0.`; such a model cannot be cut")
    return found


def _narrowed(tensors: Mapping[str, torch.Tensor], neurons: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors with only the chosen neurons of each layer (by its new place)."""
    out = dict(tensors)
    for name, tensor in tensors.items():
        layer, part = _LAYER.fullmatch(name), _FEED_FORWARD.search(name)
        if layer and part:
            kept = neurons[int(layer[2])]
            out[name] = (tensor[:, kept] if part[1] == "down" else tensor[kept]).contiguous()
    return out


def _config(config: Mapping[str, Any], layers: Sequence[int], new: Mapping[int, int] | None) -> dict[str, Any]:
    out = _renumbered(config, new)
    out["num_hidden_layers"] = len(layers)
    if isinstance(config.get("layer_types"), list):
        out["layer_types"] = [config["layer_types"][layer] for layer in layers]
    if new is not None:
        out["vocab_size"] = len(new)
    return out


def _renumbered(config: Mapping[str, Any], new: Mapping[int, int] | None) -> dict[str, Any]:
    """A config in which the ids of special tokens have their new numbers; one that is not kept becomes null."""
    out = dict(config)
    for key in _IDS if new is not None else ():
        value = config.get(key)
        if isinstance(value, int):
            out[key] = new.get(value) if new is not None else value
        elif isinstance(value, list):
            out[key] = [new[number] for number in value if new is not None and number in new]
    added = config.get("added_tokens_decoder")
    if new is not None and isinstance(added, dict):
        out["added_tokens_decoder"] = {str(new[int(number)]): token for number, token in added.items()}
    return out


def _write(
    source: Path, target: Path, files: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], lineage: Lineage
) -> None:
    with staged(target) as folder:
        copy_rest(source, folder)
        for name, value in files.items():
            write_atomic(folder / name, orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
        write_shard(folder / "model.safetensors", tensors)
        known = {"weights": weights_digest(folder), "tokenizer": tokenizer_digest(folder)}
        write_lineage(folder, msgspec.structs.replace(lineage, **known))


def _json(path: Path) -> dict[str, Any]:
    try:
        document = orjson.loads(read_bytes(path))
    except orjson.JSONDecodeError as error:
        raise CheckpointError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise CheckpointError(f"{path}: not a JSON object")
    return document
