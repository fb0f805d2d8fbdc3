"""Export of a trained draft head into a checkpoint.

What always holds: the head that comes out is complete; every tensor of the policy and every other file is byte-identical
to the source's; a tensor that the index does not list, or a file that it does not, is never left behind (engines pass
over both without a word).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import orjson
import torch

from harnessctl.checkpoint.experts import Form, form_of, in_form
from harnessctl.checkpoint.folder import copy_rest, staged
from harnessctl.checkpoint.head import (
    Shapes,
    borrowed_shapes,
    check_head,
    claimed_layers,
    compare_head,
    has_native_head,
    head_shapes,
)
from harnessctl.checkpoint.layout import (
    HEAD,
    INDEX,
    Layout,
    head_digest,
    index_of,
    read_config,
    read_layout,
    weights_digest,
)
from harnessctl.checkpoint.lineage import write_lineage
from harnessctl.checkpoint.shards import (
    DTYPES,
    Shard,
    StoredTensor,
    as_stored,
    copy_file,
    keep_tensors,
    read_shard,
    rewrite_shard,
    write_shard,
)
from harnessctl.errors import CheckpointError
from harnessctl.records.lineage import Head, Lineage
from harnessctl.storage import write_atomic

_FILE = "model-mtp.safetensors"


def export_head(
    source: Path,
    target: Path,
    head: Mapping[str, torch.Tensor],
    *,
    lineage: Lineage,
    known: Head | None = None,
    form: Form | Literal["auto"] = "auto",
) -> Lineage:
    """Write `source` with the draft head `head` (names `mtp.*`, experts fused or apart) to `target`.

    A head that is there already is replaced in its own files, byte ranges and dtypes; else it goes into a file of its
    own, in the dtype that most of the source's weights have, and the index says so. `form`: how experts are stored;
    auto is as the source has them, else fused (apart for Qwen3-Next). `known` is what the lineage says of the head; its
    state becomes `trained`. Returns the lineage as written. CheckpointError lists the names that are missing, beside the
    set or misshapen, before anything is written; StorageError when the disk refuses.
    """
    layout = read_layout(source)
    stored = {name: tensor for name, tensor in layout.tensors.items() if name in layout.head_names}
    given = in_form(head, _form(form, layout) if form == "auto" else form)
    _check(given, layout)
    is_same = given.keys() == stored.keys() and all(tuple(given[name].shape) == stored[name].shape for name in given)
    with staged(target) as folder:
        copy_rest(source, folder)
        if is_same:
            _replace(layout, folder, {name: as_stored(name, given[name], stored[name]) for name in given})
        else:
            dtype = next(iter(stored.values())).dtype if stored else _common_dtype(layout)
            _add(layout, folder, {name: _cast(name, tensor, dtype) for name, tensor in given.items()})
        check_head(folder)
        full = msgspec.structs.replace(
            lineage,
            weights=weights_digest(folder),
            head=msgspec.structs.replace(known or Head(), state="trained", weights=head_digest(folder)),
        )
        write_lineage(folder, full)
    return full


def head_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """The draft head in a checkpoint, experts fused, in the dtype that it is stored in; empty where there is none."""
    from safetensors import safe_open

    layout = read_layout(folder)
    found: dict[str, torch.Tensor] = {}
    for file in sorted({layout.files[name] for name in layout.head_names}):
        with safe_open(folder / file, framework="pt") as opened:
            found |= {name: opened.get_tensor(name) for name in layout.shards[file].tensors if name.startswith(HEAD)}
    return in_form(found, "fused")


def expected_head(folder: Path, form: Form | Literal["auto"] = "auto") -> Shapes:
    """Names and shapes of the head that the checkpoint in `folder` can have, whether it has one or not."""
    return _expected(read_layout(folder), form)


def _expected(layout: Layout, form: Form | Literal["auto"]) -> Shapes:
    config = read_config(layout.folder)
    if not has_native_head(config):
        return borrowed_shapes(layout)
    return head_shapes(
        config, form=_form(form, layout) if form == "auto" else form, layers=max(1, claimed_layers(config))
    )


def _form(form: Form | Literal["auto"], layout: Layout) -> Form:
    if form != "auto":
        return form
    return form_of(layout.head_names or layout.files)


def _check(given: Mapping[str, torch.Tensor], layout: Layout) -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in given.items()}
    if faults := compare_head(shapes, _expected(layout, form_of(given))):
        raise CheckpointError(f"the draft head does not fit {layout.folder}: {'; '.join(faults)}")


def _replace(layout: Layout, folder: Path, new: Mapping[str, torch.Tensor]) -> None:
    """Every file as it is, with the bytes of `new` in the place of the old head's."""
    for file, shard in layout.shards.items():
        rewrite_shard(shard, folder / file, {name: new[name] for name in shard.tensors if name in new})
    if layout.index is not None:
        copy_file(layout.folder / INDEX, folder / INDEX)


def _add(layout: Layout, folder: Path, new: Mapping[str, torch.Tensor]) -> None:
    """Every file as it is, without the tensors of an old head, and one file for the new."""
    shards: dict[str, Shard] = {}
    for file, shard in layout.shards.items():
        kept = [name for name in shard.tensors if not name.startswith(HEAD)]
        if len(kept) == len(shard.tensors):
            copy_file(shard.path, folder / file)
        elif kept:
            keep_tensors(shard, folder / file, kept)
        if kept:
            shards[file] = read_shard(folder / file)
    file = _FILE
    while file in shards:
        file = file.replace(".safetensors", "-new.safetensors")
    write_shard(folder / file, new)
    shards[file] = read_shard(folder / file)
    text = orjson.dumps(index_of(layout, shards), option=orjson.OPT_INDENT_2)
    write_atomic(folder / INDEX, text + b"\n")


def _cast(name: str, tensor: torch.Tensor, dtype: str) -> torch.Tensor:
    return as_stored(name, tensor, StoredTensor(dtype, tuple(tensor.shape), 0, 0))


def _common_dtype(layout: Layout) -> str:
    """The dtype that holds most of the policy's weights; CheckpointError when that one cannot be written."""
    sizes: dict[str, int] = {}
    for stored in layout.tensors.values():
        sizes[stored.dtype] = sizes.get(stored.dtype, 0) + stored.end - stored.start
    dtype = max(sizes, key=lambda code: sizes[code])
    if dtype not in DTYPES or not DTYPES[dtype].is_floating_point:
        raise CheckpointError(
            f"the weights of {layout.folder} are stored as {dtype}, quantised; a head cannot be written like them",
            hint="export the head into the checkpoint before it is quantised",
        )
    return dtype
