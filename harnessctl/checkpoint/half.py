"""Half: a checkpoint in 16 bits, as a package carries it.

What always holds: the copy's weights are those of the source, each rounded to bfloat16; its lineage says so by digests of
its own, and names no folder of the machine that it was made on.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import torch
from safetensors.torch import load_file

from harnessctl.checkpoint.folder import copy_rest, staged
from harnessctl.checkpoint.layout import SINGLE, head_digest, read_layout, weights_digest
from harnessctl.checkpoint.lineage import read_lineage, write_lineage
from harnessctl.checkpoint.shards import write_shard
from harnessctl.errors import CheckpointError


def write_half(source: Path, target: Path, *, base: str) -> None:
    """Write `source` to the new folder `target`, in one file; `base` is the name or path that the base of its line is found
    by.

    CheckpointError where it is no checkpoint of harnessctl's, StorageError when the disk refuses.
    """
    lineage = read_lineage(source)
    if lineage is None:
        raise CheckpointError(f"{source} has no lineage", hint="give a checkpoint that harnessctl train made")
    tensors = {name: tensor for file in read_layout(source).shards for name, tensor in load_file(source / file).items()}
    with staged(target) as folder:
        copy_rest(source, folder)
        write_shard(folder / SINGLE, {name: _half(tensors[name]) for name in sorted(tensors)})
        weights = weights_digest(folder)
        write_lineage(
            folder,
            msgspec.structs.replace(
                lineage,
                weights=weights,
                base=weights if lineage.base == lineage.weights else lineage.base,
                base_path=base,
                parent_path=None,
                head=msgspec.structs.replace(lineage.head, weights=head_digest(folder)),
            ),
        )


def _half(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor
