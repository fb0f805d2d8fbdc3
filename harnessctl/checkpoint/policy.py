"""Policy checkpoints: a model folder in which training changed some tensors and nothing else.

What always holds: tensors keep their names, dtypes, files and order; those that were not given are byte-identical, and so
is every other file; a draft head is carried across, and the lineage says that its policy has moved on; the folder appears
whole, by one rename.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch

from harnessctl.checkpoint.folder import copy_rest, staged
from harnessctl.checkpoint.head import check_head
from harnessctl.checkpoint.layout import (
    HEAD,
    INDEX,
    Layout,
    head_digest,
    listed,
    read_config,
    read_layout,
    text_config,
    weights_digest,
)
from harnessctl.checkpoint.lineage import is_base, known_head, next_lineage, read_lineage, write_lineage
from harnessctl.checkpoint.shards import DTYPES, as_stored, copy_file, rewrite_shard
from harnessctl.checkpoint.tokenizer import check_tokenizer
from harnessctl.errors import CheckpointError
from harnessctl.records.lineage import Head, Lineage

__all__ = [
    "check_checkpoint",
    "check_tokenizer",
    "is_base",
    "next_lineage",
    "read_lineage",
    "save_checkpoint",
    "weights_digest",
]

#: Ends of the names that tied embeddings go by: the table that is read from, and the one that logits come from.
_TABLES = ("embed_tokens.weight", "wte.weight", "embed_in.weight")
_OUTPUTS = ("lm_head.weight", "embed_out.weight")


def save_checkpoint(
    target: Path,
    *,
    source: Path,
    changed: Mapping[str, torch.Tensor],
    lineage: Lineage,
    head: Literal["carry", "stale"] = "carry",
) -> Lineage:
    """Write `source` with the tensors `changed` (names and shapes as stored there, any floating dtype) to `target`.

    The draft head goes across as it is; `carry` demands that it be whole if the config claims one, `stale` does not, and
    marks it as not going with this policy. Returns the lineage as written, with the digests of the weights and the state
    of the head filled in. CheckpointError lists tensors that do not fit, before anything is written; StorageError when
    the disk refuses: an older checkpoint at `target` then stays.
    """
    layout = read_layout(source)
    if head == "carry":
        check_head(source)
    given = _resolved(changed, layout)
    with staged(target) as folder:
        copy_rest(source, folder)
        for file, shard in layout.shards.items():
            new = {name: as_stored(name, given[name], part) for name, part in shard.tensors.items() if name in given}
            rewrite_shard(shard, folder / file, new)
        if layout.index is not None:
            copy_file(source / INDEX, folder / INDEX)
        full = msgspec.structs.replace(lineage, weights=weights_digest(folder), head=_head_after(source, folder, head))
        write_lineage(folder, full)
    return full


def check_checkpoint(folder: Path, *, head: bool = True, content: bool = False) -> Layout:
    """The layout of a checkpoint that can be used. CheckpointError when weights or config are missing or damaged, or
    (`head`) when the draft head is not what the config claims; with `content` also when the weights are not those that
    its lineage speaks of, which reads every byte."""
    layout = read_layout(folder)
    read_config(folder)
    if head:
        check_head(folder)
    lineage = read_lineage(folder)
    if content and lineage is not None:
        for what, says, is_now in (
            ("weights", lineage.weights, weights_digest(folder)),
            ("head", lineage.head.weights, head_digest(folder)),
        ):
            if says != is_now:
                raise CheckpointError(
                    f"{folder}: the {what} have the digest {is_now}; lineage.json says {says}",
                    hint="the files were changed after they were saved",
                )
    return layout


def _head_after(source: Path, folder: Path, head: Literal["carry", "stale"]) -> Head:
    """What is known of the head beside the new policy: where it came from, and no acceptance, which was the old one's."""
    before = known_head(source)
    if before.state == "none":
        return before
    state: Literal["carried", "stale"] = "stale" if head == "stale" or before.state == "stale" else "carried"
    return Head(state=state, source=before.source, depths=before.depths, weights=head_digest(folder))


def _resolved(changed: Mapping[str, torch.Tensor], layout: Layout) -> dict[str, torch.Tensor]:
    """`changed` by the names that are stored: tied embeddings under each of theirs. CheckpointError lists what does not
    fit."""
    given = dict(changed)
    if _is_tied(read_config(layout.folder)):
        _tie(given, layout)
    stored = layout.tensors
    faults = [f"{name}: no such tensor is stored" for name in given if name not in stored]
    faults += [f"{name}: of the draft head, which `export_head` writes" for name in given if name.startswith(HEAD)]
    for name in given.keys() & stored.keys():
        shape, wanted = list(given[name].shape), list(stored[name].shape)
        if shape != wanted:
            faults.append(f"{name}: got shape {shape}, stored {wanted}")
        elif stored[name].dtype not in DTYPES:
            faults.append(f"{name}: stored as {stored[name].dtype}, quantised, which cannot be written anew")
    if faults:
        raise CheckpointError(
            f"{len(faults)} of {len(given)} tensors do not fit {layout.folder}: {listed(sorted(faults))}",
            hint="save_checkpoint takes the names and shapes of the checkpoint that training began from",
        )
    return given


def _is_tied(config: Mapping[str, Any]) -> bool:
    """Whether input and output embeddings are one tensor."""
    return bool(config.get("tie_word_embeddings", text_config(config).get("tie_word_embeddings", False)))


def _tie(given: dict[str, torch.Tensor], layout: Layout) -> None:
    """Give every stored name of tied embeddings the tensor that one of them was given."""
    ends = (*_TABLES, *_OUTPUTS)
    names = [name for name in {**given, **layout.files} if name.endswith(ends) and not name.startswith(HEAD)]
    held = [name for name in names if name in given]
    if not held or not any(name in layout.files for name in names):
        return
    for name in held[1:]:
        first, other = given[held[0]], given[name]
        if first is not other and not (first.shape == other.shape and torch.equal(first, other)):
            raise CheckpointError(f"{held[0]} and {name} are tied by the config, and two different tensors are given")
    tensor = given[held[0]]
    for name in names:
        if name in layout.files:
            given[name] = tensor
        else:
            del given[name]
