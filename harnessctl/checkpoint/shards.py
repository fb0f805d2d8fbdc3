"""Shards: safetensors files as they lie on disk, byte for byte.

What always holds: a shard that is rewritten keeps its header and every byte of the tensors that were not given; what is
written is on the disk (fsync) when the function returns, or StorageError says why not.

The format: 8 bytes, little-endian, the length of the header; the header, a JSON object from names to dtype, shape and
offsets, padded with spaces; then the tensors without gaps.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import torch

from harnessctl.errors import CheckpointError, StorageError

#: Codes of the format and what torch calls them. Others (F8 and the like, which mean nothing without their scales) are
#: copied and hashed, not written anew.
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_CODES = {dtype: code for code, dtype in DTYPES.items()}
#: What readers of the format allow for a header.
MAX_HEADER_BYTES = 100_000_000
_PIECE = 1 << 24


@dataclass(slots=True, frozen=True)
class StoredTensor:
    """A tensor of a shard: code of its dtype, shape, and its half-open range of bytes in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(slots=True, frozen=True)
class Shard:
    """A file. `head` are its bytes before the first tensor; `tensors` are in the order of their places."""

    path: Path
    head: bytes
    tensors: dict[str, StoredTensor]


def read_shard(path: Path) -> Shard:
    """What `path` holds, without its tensors' bytes. CheckpointError when it is no whole safetensors file (cut short,
    overlapping or missing ranges), StorageError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            prefix = file.read(8)
            length = int.from_bytes(prefix, "little")
            if len(prefix) < 8 or not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
                raise CheckpointError(f"{path}: not a safetensors file, or one that is cut short ({size} bytes)")
            text = file.read(length)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    tensors = _parsed(path, text, size)
    return Shard(path, prefix + text, tensors)


def _parsed(path: Path, text: bytes, size: int) -> dict[str, StoredTensor]:
    base = 8 + len(text)
    found: dict[str, StoredTensor] = {}
    try:
        for name, entry in orjson.loads(text).items():
            if name != "__metadata__":
                start, end = entry["data_offsets"]
                found[name] = StoredTensor(str(entry["dtype"]), tuple(entry["shape"]), base + start, base + end)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: the header of the safetensors file is damaged: {error}") from error
    place = base
    ordered = dict(sorted(found.items(), key=lambda item: (item[1].start, item[1].end)))
    for name, stored in ordered.items():
        if stored.start != place or stored.end < place:
            raise CheckpointError(f"{path}: the bytes of {name} begin at {stored.start}, those before end at {place}")
        place = stored.end
    if place != size:
        raise CheckpointError(f"{path}: {size} bytes, the header speaks of {place}: the file is cut short or damaged")
    return ordered


def tensor_bytes(tensor: torch.Tensor) -> memoryview:
    """The bytes of `tensor` in row-major order, copied only where they lie on another device or apart."""
    flat = tensor.detach().to("cpu").contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data


def code_of(tensor: torch.Tensor) -> str:
    """The format's code for the dtype; CheckpointError for one that is not among DTYPES."""
    if tensor.dtype not in _CODES:
        raise CheckpointError(f"tensors of {tensor.dtype} cannot be stored; allowed {', '.join(DTYPES)}")
    return _CODES[tensor.dtype]


def write_shard(path: Path, tensors: Mapping[str, torch.Tensor]) -> str:
    """Write `tensors` to the new file `path`; returns the SHA-256 of the file. The same tensors give the same bytes."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name in order:
        end = place + tensors[name].numel() * tensors[name].element_size()
        header[name] = {
            "dtype": code_of(tensors[name]),
            "shape": list(tensors[name].shape),
            "data_offsets": [place, end],
        }
        place = end
    return _written(path, [_framed(header)], *([tensor_bytes(tensors[name])] for name in order))


def rewrite_shard(shard: Shard, target: Path, changed: Mapping[str, torch.Tensor]) -> None:
    """Copy `shard` to `target` with the bytes of `changed` in the place of the old ones; these have the stored dtype and
    shape already (`as_stored`). Everything else, the header too, stays as it is."""
    parts = (
        [tensor_bytes(changed[name])] if name in changed else _pieces(shard.path, stored.start, stored.end)
        for name, stored in shard.tensors.items()
    )
    _written(target, [shard.head], *parts)


def keep_tensors(shard: Shard, target: Path, names: Iterable[str]) -> None:
    """Copy `shard` to `target` with the tensors `names` alone, their bytes and the header's metadata as they were."""
    kept = set(names)
    old: dict[str, Any] = orjson.loads(shard.head[8:])
    header: dict[str, Any] = {"__metadata__": old["__metadata__"]} if "__metadata__" in old else {}
    ranges = {name: stored for name, stored in shard.tensors.items() if name in kept}
    place = 0
    for name, stored in ranges.items():
        end = place + stored.end - stored.start
        header[name] = {**old[name], "data_offsets": [place, end]}
        place = end
    _written(target, [_framed(header)], *(_pieces(shard.path, part.start, part.end) for part in ranges.values()))


def as_stored(name: str, tensor: torch.Tensor, stored: StoredTensor) -> torch.Tensor:
    """`tensor` in the dtype of the stored one. CheckpointError when shapes differ, the dtype cannot be written, or a
    value is no number or does not fit the stored dtype."""
    if tuple(tensor.shape) != stored.shape:
        raise CheckpointError(f"{name}: got shape {list(tensor.shape)}; the checkpoint's is {list(stored.shape)}")
    if stored.dtype not in DTYPES:
        raise CheckpointError(f"{name}: stored as {stored.dtype}, which cannot be written; allowed {', '.join(DTYPES)}")
    cast = tensor.detach().to(DTYPES[stored.dtype])
    if cast.is_floating_point() and not bool(torch.isfinite(cast.float()).all()):
        what = "holds values that are not numbers"
        if bool(torch.isfinite(tensor.float()).all()):
            what = f"holds values beyond the range of {stored.dtype}, in which the checkpoint stores it"
        raise CheckpointError(f"{name}: {what}", hint="go back to an earlier point; lower the learning rate")
    return cast


def sha256_of(path: Path, start: int = 0, end: int | None = None) -> str:
    """SHA-256 of the bytes of `path` from `start` to `end`, or to its end."""
    seen = hashlib.sha256()
    for piece in _pieces(path, start, end):
        seen.update(piece)
    return seen.hexdigest()


def copy_file(source: Path, target: Path) -> None:
    """Copy the bytes of `source` to the new file `target`, onto the disk."""
    _written(target, _pieces(source, 0, None))


def _framed(header: Mapping[str, Any]) -> bytes:
    text = orjson.dumps(header)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _pieces(path: Path, start: int, end: int | None) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            end = os.fstat(file.fileno()).st_size if end is None else end
            file.seek(start)
            while start < end:
                piece = file.read(min(_PIECE, end - start))
                if not piece:
                    raise StorageError(f"cannot read {path}: it became shorter while it was read")
                start += len(piece)
                yield piece
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def _written(path: Path, *groups: Iterable[bytes | memoryview]) -> str:
    """Write the parts to the new file `path` and wait for the disk; returns the SHA-256. A file that could not be
    finished is removed."""
    seen = hashlib.sha256()
    try:
        with open(path, "xb") as file:
            for part in chain.from_iterable(groups):
                file.write(part)
                seen.update(part)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        if not isinstance(error, FileExistsError):
            with contextlib.suppress(OSError):
                path.unlink()
        if isinstance(error, OSError):
            raise StorageError(f"cannot write {path}: {error.strerror}") from error
        raise
    return seen.hexdigest()
