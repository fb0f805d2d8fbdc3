"""Resume points: where a training that was broken off goes on.

What always holds: a point is whole or is not there. `step-<n>.json` is renamed into place last and names the tensors'
file with its SHA-256, so that kill -9 at any moment leaves the newest point readable, also where a step is saved again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import safetensors.torch
import torch

from harnessctl.checkpoint.shards import sha256_of, write_shard
from harnessctl.errors import CheckpointError, StorageError
from harnessctl.storage import make_folder, read_bytes, write_atomic

FORMAT = "harnessctl/resume.v1"

_POINT = re.compile(r"step-(\d{8,})\.json")
_TENSORS = re.compile(r"step-\d{8,}-[0-9a-f]{8}\.safetensors")
_PARTIAL = re.compile(r"\.(new-[0-9a-f]{8}\.safetensors|step-\d{8,}\.json\..*)")


class _Content(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="format", tag=FORMAT):
    """The JSON of a point. `same` maps names to the stored name whose memory they share (tied weights)."""

    step: int
    file: str
    sha256: str
    same: dict[str, str]
    state: dict[str, Any]


@dataclass(slots=True, frozen=True)
class ResumePoint:
    """The state after `step` steps, checked against its digest. `state` is JSON: tuples have become lists."""

    step: int
    state: dict[str, Any]
    _path: Path
    _same: dict[str, str]

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors, on the CPU, with the dtypes and the sharing that they were saved with."""
        try:
            found: dict[str, torch.Tensor] = safetensors.torch.load_file(self._path)
        except (OSError, safetensors.SafetensorError) as error:
            raise StorageError(f"cannot read {self._path}: {error}") from error
        return found | {name: found[stored] for name, stored in self._same.items()}


class ResumePoints:
    """The points in `folder`, of which the `keep` newest stay. `skipped` says of the points that the last `newest`
    passed over what is wrong with each. One process at a time writes."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder = folder
        self.skipped: list[str] = []
        self._keep = max(1, keep)

    def save(self, step: int, tensors: Mapping[str, torch.Tensor], state: dict[str, Any]) -> None:
        """Keep a point; it is on the disk when this returns. Older ones beyond `keep` go, and so do those of later
        steps: they are of a training that was given up, or damaged.

        StorageError when the disk refuses (full, say): the points from before stay. CheckpointError when `state` is no
        JSON or a tensor's dtype cannot be stored.
        """
        plain = _plain(state)
        own, same = _without_twins(tensors)
        name = f"step-{step:08d}"
        partial = self.folder / f".new-{secrets.token_hex(4)}.safetensors"
        try:
            make_folder(self.folder)
            sha256 = write_shard(partial, own)
            file = f"{name}-{sha256[:8]}.safetensors"
            os.replace(partial, self.folder / file)
            _sync(self.folder)
            content = _Content(step=step, file=file, sha256=sha256, same=same, state=plain)
            write_atomic(self.folder / f"{name}.json", json.dumps(msgspec.to_builtins(content)).encode())
            _sync(self.folder)
            self._drop_others(step)
        except OSError as error:
            raise StorageError(f"cannot write to {self.folder}: {error.strerror}") from error
        finally:
            self._sweep()

    def newest(self) -> ResumePoint | None:
        """The newest whole point; None where there is none. What is incomplete or damaged is passed over, see
        `skipped`."""
        self.skipped = []
        for step, path in sorted(self._points().items(), reverse=True):
            try:
                content = self._content(path, step)
                tensors = self.folder / content.file
                if sha256_of(tensors) != content.sha256:
                    raise CheckpointError(f"{tensors}: the content is not what it was when it was saved")
            except (CheckpointError, StorageError) as error:
                self.skipped.append(f"step {step}: {error.message}")
                continue
            return ResumePoint(content.step, content.state, tensors, content.same)
        return None

    def newest_step(self) -> int | None:
        """The step of the newest whole point."""
        point = self.newest()
        return None if point is None else point.step

    def _points(self) -> dict[int, Path]:
        try:
            return {int(found[1]): path for path in self._files() if (found := _POINT.fullmatch(path.name))}
        except OSError as error:
            raise StorageError(f"cannot read {self.folder}: {error.strerror}") from error

    def _files(self) -> list[Path]:
        return list(self.folder.iterdir()) if self.folder.exists() else []

    def _content(self, path: Path, step: int) -> _Content:
        try:
            content = msgspec.convert(json.loads(read_bytes(path)), _Content)
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{path}: not a resume point of {FORMAT}: {error}") from error
        if content.step != step or not _TENSORS.fullmatch(content.file):
            raise CheckpointError(f"{path}: speaks of step {content.step} and the file {content.file!r}")
        return content

    def _drop_others(self, step: int) -> None:
        points = self._points()
        kept = sorted((other for other in points if other <= step), reverse=True)[: self._keep]
        for other in points.keys() - set(kept):
            points[other].unlink()

    def _sweep(self) -> None:
        """Remove what no point names: what killed and failed saves left, and the tensors of points that are gone."""
        with contextlib.suppress(OSError, StorageError):
            named: set[str] = set()
            for step, path in self._points().items():
                with contextlib.suppress(CheckpointError):
                    named.add(self._content(path, step).file)
            for path in self._files():
                if _PARTIAL.fullmatch(path.name) or (_TENSORS.fullmatch(path.name) and path.name not in named):
                    path.unlink()


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """`state` as JSON gives it back; CheckpointError for what would come back as something else."""
    try:
        text = json.dumps(state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"the state of a resume point is not JSON: {error}") from error
    if wrong := _odd_key(state):
        raise CheckpointError(f"the state of a resume point has the key {wrong[0]!r}; allowed are strings")
    plain: dict[str, Any] = json.loads(text)
    return plain


def _odd_key(value: Any) -> tuple[Any] | None:
    """The first key that is no string, in a tuple because it may be None."""
    if isinstance(value, dict):
        for key, item in value.items():
            found = (key,) if not isinstance(key, str) else _odd_key(item)
            if found:
                return found
    elif isinstance(value, (list, tuple)):
        return next((found for item in value if (found := _odd_key(item))), None)
    return None


def _without_twins(tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors, each memory once, and which of the other names stand for which of these."""
    own: dict[str, torch.Tensor] = {}
    same: dict[str, str] = {}
    first: dict[tuple[Any, ...], str] = {}
    for name, tensor in tensors.items():
        place = (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        if tensor.numel() and place in first:
            same[name] = first[place]
        else:
            own[name] = tensor
            first[place] = name
    return own, same


def _sync(folder: Path) -> None:
    """Wait until the names in `folder` are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
