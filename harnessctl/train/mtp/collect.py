"""Collect: the hidden states of a frozen policy along its sequences, computed once and kept.

What always holds: a shard is whole or is not there; shards of one folder are of one policy, one set of sequences and
one dtype, which its manifest names; what was broken off goes on with the shards that are missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from safetensors import safe_open
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from harnessctl.checkpoint.shards import write_shard
from harnessctl.errors import RecordError, StorageError, TrainingError
from harnessctl.storage import make_folder, read_bytes, write_atomic
from harnessctl.train.mtp.sequences import LabelledSequence, Sequences

FORMAT = "harnessctl/hidden.v1"
StateDtype = Literal["float32", "float16", "bfloat16"]


class Manifest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="format", tag=FORMAT):
    """manifest.json of a folder of hidden states. `policy` and `data` are digests; `shards` the number of sequences
    in each file, in order; `lengths` the number of tokens in each sequence."""

    policy: str
    data: str
    dtype: StateDtype
    width: int
    shards: list[int]
    lengths: list[int]


@dataclass(slots=True, frozen=True)
class Example:
    """One sequence: `ids` and `mask` (tokens) of int64, `hidden` (tokens, width) after the policy's final norm."""

    ids: torch.Tensor
    mask: torch.Tensor
    hidden: torch.Tensor


class HiddenStates:
    """A folder of collected states. Sequences are numbered as they were given."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._opened: dict[int, Any] = {}

    @property
    def lengths(self) -> list[int]:
        """Tokens of each sequence."""
        return self.manifest.lengths

    def missing(self) -> list[int]:
        """The shards that are not there yet."""
        return [shard for shard in range(len(self.manifest.shards)) if not self.path(shard).is_file()]

    def path(self, shard: int) -> Path:
        """Where a shard lies."""
        return self.folder / f"states-{shard:05}.safetensors"

    def read(self, number: int) -> Example:
        """Sequence `number`. StorageError when its shard cannot be read."""
        ids, mask, hidden = self._slices(number, "ids", "mask", "hidden")
        return Example(ids.long(), mask.long(), hidden)

    def mask(self, number: int) -> torch.Tensor:
        """The mask (tokens) of sequence `number` alone."""
        return self._slices(number, "mask")[0].long()

    def _slices(self, number: int, *names: str) -> list[torch.Tensor]:
        shard, first, end = self._places[number]
        try:
            if shard not in self._opened:
                self._opened[shard] = safe_open(self.path(shard), framework="pt")
            held = self._opened[shard]
            return [held.get_slice(name)[first:end] for name in names]
        except Exception as error:  # safetensors raises its own kind, and OSError
            raise StorageError(f"cannot read {self.path(shard)}: {error}") from error

    def numbers(self, shard: int) -> range:
        """The sequences that a shard holds."""
        first = sum(self.manifest.shards[:shard])
        return range(first, first + self.manifest.shards[shard])

    @cached_property
    def _places(self) -> list[tuple[int, int, int]]:
        """For each sequence its shard, and its half-open range of tokens there."""
        places: list[tuple[int, int, int]] = []
        for shard in range(len(self.manifest.shards)):
            first = 0
            for number in self.numbers(shard):
                places.append((shard, first, first + self.lengths[number]))
                first += self.lengths[number]
        return places


def open_states(
    folder: Path, sequences: Sequences, *, policy: str, width: int, dtype: StateDtype, shard_tokens: int
) -> HiddenStates:
    """The states in `folder`, with none missing or some; a new folder gets its manifest here.

    `policy` is the digest of the weights. TrainingError when the folder holds states of another policy or other sequences.
    """
    path = folder / "manifest.json"
    wanted = Manifest(
        policy=policy,
        data=sequences.digest,
        dtype=dtype,
        width=width,
        shards=_shards([len(item.ids) for item in sequences.items], shard_tokens),
        lengths=[len(item.ids) for item in sequences.items],
    )
    if not path.is_file():
        write_atomic(path, msgspec.json.encode(wanted))
        return HiddenStates(folder, wanted)
    try:
        found = msgspec.json.decode(read_bytes(path), type=Manifest)
    except msgspec.DecodeError as error:
        raise RecordError(f"{path}: not a manifest of hidden states: {error}") from error
    hint = f"remove {folder}, or give hidden=FOLDER for new ones"
    if found.policy != policy:
        raise TrainingError(
            f"{folder} holds hidden states of the policy {found.policy[:12]}; this one is {policy[:12]}", hint=hint
        )
    if found.data != wanted.data:
        raise TrainingError(
            f"{folder} holds hidden states along other sequences ({len(found.lengths)}, data {found.data[:12]}) than"
            f" those that are given ({len(wanted.lengths)}, data {wanted.data[:12]})",
            hint=hint,
        )
    if (found.dtype, found.width) != (dtype, width):
        raise TrainingError(
            f"{folder} holds states of {found.width} numbers of {found.dtype}; wanted {width} of {dtype}", hint=hint
        )
    return HiddenStates(folder, found)


def collect(
    states: HiddenStates,
    items: Sequence[LabelledSequence],
    model: PreTrainedModel,
    *,
    autocast: Callable[[], Any],
    batch_tokens: int,
    process: int = 0,
    processes: int = 1,
    on_shard: Callable[[int, int], None] | None = None,
) -> None:
    """Write the shards that are missing; of several processes each writes its own. StorageError when the disk is full:
    the shards from before stay. `on_shard` is told how many of this process's are done, and of how many."""
    # By number, not by place among the missing: another process may have written one already.
    mine = [shard for shard in states.missing() if shard % processes == process]
    for done, shard in enumerate(mine, 1):
        part = [items[number] for number in states.numbers(shard)]
        with torch.inference_mode(), autocast():
            hidden = _hidden(model, [item.ids for item in part], batch_tokens)
        tensors = {
            "ids": torch.tensor([token for item in part for token in item.ids], dtype=torch.int32),
            "mask": torch.tensor([sampled for item in part for sampled in item.mask], dtype=torch.uint8),
            "hidden": torch.cat(hidden).to(getattr(torch, states.manifest.dtype)),
        }
        _write(states.path(shard), tensors)
        if on_shard is not None:
            on_shard(done, len(mine))


def _hidden(model: PreTrainedModel, sequences: Sequence[list[int]], batch_tokens: int) -> list[torch.Tensor]:
    """The states (tokens, width) of each sequence, after the final norm, on the CPU.

    Padding stands behind, where nothing causal can see it: neither attention nor a recurrent state needs a mask.
    """
    order = sorted(range(len(sequences)), key=lambda place: len(sequences[place]))
    found: dict[int, torch.Tensor] = {}
    while order:
        longest = len(sequences[order[-1]])
        batch = [order.pop() for _ in range(min(len(order), max(1, batch_tokens // longest)))]
        rows = pad_sequence([torch.tensor(sequences[place]) for place in batch], batch_first=True).to(model.device)
        out = model.get_decoder()(input_ids=rows, use_cache=False).last_hidden_state.cpu()
        for row, place in zip(out, batch, strict=True):
            found[place] = row[: len(sequences[place])]
    return [found[place] for place in range(len(sequences))]


def _write(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    partial = path.with_name(f".{path.name}.new")
    try:
        make_folder(path.parent)
        partial.unlink(missing_ok=True)
        write_shard(partial, tensors)
        os.replace(partial, path)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _shards(lengths: Sequence[int], most: int) -> list[int]:
    """How many sequences go into each shard, of about `most` tokens."""
    shards: list[int] = []
    tokens = most
    for length in lengths:
        if tokens + length > most:
            shards.append(0)
            tokens = 0
        shards[-1] += 1
        tokens += length
    return shards
