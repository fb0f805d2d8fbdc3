"""The digest of weights: the same however tensors are spread over files, another for any change of one."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from harnessctl.checkpoint.layout import head_digest, weights_digest
from tests.checkpoint.conftest import head_of, policy_tensors, write_checkpoint

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int8]
names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6)


@st.composite
def tensor_sets(draw: st.DrawFn) -> dict[str, torch.Tensor]:
    chosen = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    return {
        name: torch.arange(draw(st.integers(0, 6))).to(draw(st.sampled_from(DTYPES))) + draw(st.integers(0, 3))
        for name in chosen
    }


def written(folder: Path, tensors: dict[str, torch.Tensor], place: dict[str, int]) -> str:
    """The digest of the tensors, each in the file of its number."""
    import json

    weight_map: dict[str, str] = {}
    for number in sorted(set(place.values())):
        file = f"part-{number}.safetensors"
        mine = {name: tensors[name] for name in tensors if place[name] == number}
        save_file(mine, folder / file)
        weight_map |= dict.fromkeys(mine, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return weights_digest(folder)


@settings(max_examples=40, deadline=None)
@given(tensors=tensor_sets(), data=st.data())
def test_neither_files_nor_order_matter(tensors: dict[str, torch.Tensor], data: st.DataObject):
    place = {name: data.draw(st.integers(0, 2)) for name in tensors}
    order = data.draw(st.permutations(list(tensors)))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        save_file(tensors, Path(one) / "model.safetensors", {"format": "pt", "made": "elsewhere"})
        shuffled = {name: tensors[name] for name in order}
        assert weights_digest(Path(one)) == written(Path(other), shuffled, place)


@settings(max_examples=40, deadline=None)
@given(tensors=tensor_sets(), data=st.data())
def test_any_change_of_a_tensor_matters(tensors: dict[str, torch.Tensor], data: st.DataObject):
    name = data.draw(st.sampled_from(sorted(tensors)))
    kind = data.draw(st.sampled_from(["name", "dtype", "shape", "bytes", "gone"]))
    changed = dict(tensors)
    tensor = changed.pop(name)
    if kind == "name":
        changed[name + "-"] = tensor
    elif kind == "dtype":
        changed[name] = tensor.to(torch.int32)
    elif kind == "shape":
        changed[name] = tensor[None]
    elif kind == "bytes":
        changed[name] = torch.cat([tensor, tensor.new_ones(1)])
        changed[name][-1] += 1
    elif not changed:
        changed["other"] = tensor + 1
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        save_file(tensors, Path(one) / "model.safetensors")
        save_file(changed, Path(other) / "model.safetensors")
        assert weights_digest(Path(one)) != weights_digest(Path(other))


def test_policy_and_head_have_digests_of_their_own(tmp_path: Path):
    bare = write_checkpoint(tmp_path / "bare", policy_tensors())
    one = write_checkpoint(tmp_path / "one", policy_tensors() | head_of(), shards=2)
    other = write_checkpoint(tmp_path / "other", policy_tensors() | head_of(seed=9), shards=3)
    assert weights_digest(bare) == weights_digest(one) == weights_digest(other)
    assert head_digest(bare) is None
    assert head_digest(one) != head_digest(other)
