"""Layout: which tensor of a model folder lies in which safetensors file.

What always holds: a layout that was read is whole: every tensor that the index lists is in its file, every tensor of a
listed file is in the index, and no name occurs twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import orjson

from harnessctl.checkpoint.shards import Shard, StoredTensor, read_shard, sha256_of
from harnessctl.errors import CheckpointError
from harnessctl.storage import digest, read_bytes

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
#: What the names of a draft head's tensors begin with (Qwen3-Next, 3.5 and 3.6).
HEAD = "mtp."


@dataclass(slots=True, frozen=True)
class Layout:
    """The weights of `folder`. `index` is the index file's document, null for a folder of one file; `shards` are by file
    name and `files` the file name of each tensor."""

    folder: Path
    index: dict[str, Any] | None
    shards: dict[str, Shard]
    files: dict[str, str]

    @property
    def tensors(self) -> dict[str, StoredTensor]:
        """Every tensor by name, in order of name."""
        return {name: self.shards[self.files[name]].tensors[name] for name in sorted(self.files)}

    @property
    def head_names(self) -> set[str]:
        """The names of the draft head's tensors."""
        return {name for name in self.files if name.startswith(HEAD)}


def read_layout(folder: Path) -> Layout:
    """The layout of a model folder, from the headers of its files. CheckpointError lists what is missing, damaged or
    found twice."""
    index_path = folder / INDEX
    if index_path.is_file():
        index = _index(index_path)
        weight_map: dict[str, str] = index["weight_map"]
        if (folder / SINGLE).is_file() and SINGLE not in weight_map.values():
            raise CheckpointError(
                f"{folder} has {SINGLE} and an index that does not list it: some readers take the one, some the other",
                hint="remove the one that is not meant",
            )
        shards = _shards(folder, set(weight_map.values()))
        _compare(folder, weight_map, shards)
        return Layout(folder, index, shards, weight_map)
    if (folder / SINGLE).is_file():
        shard = read_shard(folder / SINGLE)
        if not shard.tensors:
            raise CheckpointError(f"{folder / SINGLE} holds no tensors")
        return Layout(folder, None, {SINGLE: shard}, dict.fromkeys(shard.tensors, SINGLE))
    raise CheckpointError(f"{folder} holds no model weights; got neither {SINGLE} nor {INDEX}", hint=_hint(folder))


def _hint(folder: Path) -> str:
    if (folder / "adapter_model.safetensors").is_file():
        return "it holds an adapter alone: merge it into its model, and give that folder"
    if list(folder.glob("*.bin")):
        return "weights in other formats are not read: save the model as safetensors"
    return "" if folder.is_dir() else "there is no such folder"


def read_config(folder: Path) -> dict[str, Any]:
    """The document of `config.json`; CheckpointError when it is no JSON object."""
    return read_document(folder / "config.json", "config")


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a model's config that speaks of the language model: `text_config` where it is nested."""
    nested = config.get("text_config")
    return nested if isinstance(nested, dict) else config


def read_document(path: Path, what: str) -> dict[str, Any]:
    """A JSON object of a checkpoint's folder; `what` it is, for the message. CheckpointError for anything else."""
    if not path.is_file():
        raise CheckpointError(f"{path.parent} holds no {path.name}", hint="a checkpoint is a Hugging Face model folder")
    try:
        document = orjson.loads(read_bytes(path))
    except orjson.JSONDecodeError as error:
        raise CheckpointError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise CheckpointError(f"{path}: a {what} is a JSON object")
    return document


def _index(path: Path) -> dict[str, Any]:
    index = read_document(path, "index of weights")
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{path}: an index of weights maps tensors to files under `weight_map`")
    for name, file in weight_map.items():
        if not isinstance(file, str) or Path(file).name != file or not file.endswith(".safetensors"):
            raise CheckpointError(f"{path}: {name} is in {file!r}; allowed are safetensors files of the folder itself")
    return index


def _shards(folder: Path, files: set[str]) -> dict[str, Shard]:
    if missing := sorted(file for file in files if not (folder / file).is_file()):
        raise CheckpointError(
            f"{folder}: {len(missing)} of {len(files)} files of weights are missing: {listed(missing)}"
        )
    return {file: read_shard(folder / file) for file in sorted(files)}


def _compare(folder: Path, weight_map: Mapping[str, str], shards: Mapping[str, Shard]) -> None:
    faults = [
        f"{name} is not in {file}, where the index has it"
        for name, file in weight_map.items()
        if name not in shards[file].tensors
    ]
    faults += [
        f"{name} is in {file}, and the index has it {f'in {weight_map[name]}' if name in weight_map else 'nowhere'}"
        for file, shard in shards.items()
        for name in shard.tensors
        if weight_map.get(name) != file
    ]
    if faults:
        raise CheckpointError(f"{folder}: index and files do not agree: " + "; ".join(faults))


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names with commas; beyond `most` a count."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def weights_digest(folder: Path) -> str:
    """SHA-256 over names, dtypes, shapes and bytes of the policy's tensors: all but the draft head's.

    The same however the tensors are spread over files and ordered in them. Reads every byte.
    """
    return tensors_digest(read_layout(folder), lambda name: not name.startswith(HEAD))


def head_digest(folder: Path) -> str | None:
    """`weights_digest` of the draft head's tensors alone; None where there are none."""
    layout = read_layout(folder)
    return tensors_digest(layout, layout.head_names.__contains__) if layout.head_names else None


def tensors_digest(layout: Layout, is_meant: Callable[[str], bool]) -> str:
    """SHA-256 of the canonical JSON that maps each tensor meant to its dtype, shape and the SHA-256 of its bytes."""
    meant = {name: stored for name, stored in layout.tensors.items() if is_meant(name)}

    def entry(name: str) -> list[Any]:
        stored = meant[name]
        content = sha256_of(layout.folder / layout.files[name], stored.start, stored.end)
        return [stored.dtype, list(stored.shape), content]

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return digest(dict(zip(meant, pool.map(entry, meant), strict=True)))


def index_of(layout: Layout, shards: Mapping[str, Shard]) -> dict[str, Any]:
    """The index document for `shards`: what the old one says beside, the places in the old order with new ones last,
    and the sizes anew."""
    found = {name: file for file, shard in shards.items() for name in shard.tensors}
    old = layout.files
    weight_map = {name: found[name] for name in old if name in found} | {n: f for n, f in found.items() if n not in old}
    stored = [tensor for shard in shards.values() for tensor in shard.tensors.values()]
    index = dict(layout.index or {})
    metadata = dict(index.get("metadata") or {})
    metadata["total_size"] = sum(tensor.end - tensor.start for tensor in stored)
    if "total_parameters" in metadata:
        metadata["total_parameters"] = sum(prod(tensor.shape) for tensor in stored)
    return {**index, "metadata": metadata, "weight_map": weight_map}
