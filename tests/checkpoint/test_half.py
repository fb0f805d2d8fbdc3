"""In 16 bits: the same tensors rounded, and a lineage that speaks of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from harnessctl.checkpoint.half import write_half
from harnessctl.checkpoint.layout import head_digest, weights_digest
from harnessctl.checkpoint.lineage import read_lineage, write_lineage
from harnessctl.errors import CheckpointError
from harnessctl.records.lineage import Head
from tests.checkpoint.conftest import head_of, policy_tensors, some_lineage, write_checkpoint


@pytest.mark.parametrize("shards", [1, 3])
def test_the_tensors_rounded_and_a_lineage_of_them(tmp_path: Path, shards: int) -> None:
    wide = {name: tensor.float() / 3 for name, tensor in (policy_tensors() | head_of()).items()}
    source = write_checkpoint(tmp_path / "source", wide, shards=shards)
    weights, head = weights_digest(source), Head(state="trained", weights=head_digest(source))
    write_lineage(source, some_lineage(base=weights, weights=weights, parent_path="/home/me", head=head))
    write_half(source, tmp_path / "half", base="tiny-base")
    found = load_file(tmp_path / "half" / "model.safetensors")
    assert found.keys() == wide.keys()
    assert all(torch.equal(found[name], wide[name].to(torch.bfloat16)) for name in wide)
    lineage = read_lineage(tmp_path / "half")
    assert lineage is not None
    assert lineage.base == lineage.weights == weights_digest(tmp_path / "half") != weights
    assert (lineage.base_path, lineage.parent_path, lineage.stage) == ("tiny-base", None, "sft")
    assert lineage.head.state == "trained" and lineage.head.weights == head_digest(tmp_path / "half")
    assert (tmp_path / "half" / "extra" / "notes.txt").read_text() == "kept"


def test_a_later_stage_keeps_its_base(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "source", policy_tensors())
    write_lineage(source, some_lineage(base="b" * 64, weights=weights_digest(source)))
    write_half(source, tmp_path / "half", base="tiny-base")
    lineage = read_lineage(tmp_path / "half")
    assert lineage is not None and lineage.base == "b" * 64 and lineage.head.weights is None


def test_what_has_no_lineage_is_refused(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "source", policy_tensors())
    with pytest.raises(CheckpointError, match="has no lineage"):
        write_half(source, tmp_path / "half", base="tiny-base")
