"""The stages after each other on a tiny random model of Qwen3.6's architecture, by its own recipes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import msgspec
import orjson
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from harnessctl.checkpoint.policy import check_checkpoint
from harnessctl.records.lineage import Lineage
from tests.checkpoint.conftest import drawn
from tests.decode.conftest import make_tokenizer
from tests.train_mtp.conftest import make_qwen
from tests.train_mtp.test_export import PER_EXPERT, SHARED, stored

STAGES = ("sft", "opd", "rl", "mtp-adapt")


def write_base(folder: Path, tokenizer: Tokenizer) -> Path:
    """With a draft head of its own, as Qwen3.6 comes: transformers does not write it."""
    model = make_qwen(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=8192)
    model.save_pretrained(folder, max_shard_size="60KB")
    tokenizer.save(str(folder / "tokenizer.json"))
    head = drawn({**SHARED, **PER_EXPERT}, dtype=torch.float32)
    save_file({name: 0.05 * tensor for name, tensor in head.items()}, folder / "mtp.safetensors", {"format": "pt"})
    path = folder / "model.safetensors.index.json"
    index = orjson.loads(path.read_bytes())
    index["weight_map"] |= dict.fromkeys(head, "mtp.safetensors")
    path.write_bytes(orjson.dumps(index))
    return folder


def lineage_of(checkpoint: Path) -> Lineage:
    return msgspec.json.decode((checkpoint / "lineage.json").read_bytes(), type=Lineage)


@pytest.mark.slow
def test_four_stages_of_qwen(repository: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name in ("manifests", "skills", "recipes"):
        shutil.copytree(repository / name, project / name)
    tokenizer = make_tokenizer()
    base = write_base(tmp_path / "base", tokenizer)

    made: list[Path] = []
    for stage in STAGES:
        start = [f"start={made[-1]}"] if made else []
        done = subprocess.run(
            [
                *(sys.executable, "-m", "harnessctl", "train", stage, "model=qwen3.6-35b-a3b", f"model.path={base}"),
                *("debug=true", "--project", str(project), "--json", *start),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        made.append(Path(orjson.loads(done.stdout)["checkpoint"]))

    lineages = [lineage_of(checkpoint) for checkpoint in made]
    assert [lineage.stage for lineage in lineages] == list(STAGES)
    assert len({lineage.base for lineage in lineages}) == 1
    for before, after in pairwise(lineages):
        assert after.parent == before.weights
    assert lineages[-1].weights == lineages[-2].weights and lineages[-1].head.state == "trained"
    assert [lineage.head.state for lineage in lineages[:-1]] == ["carried", "carried", "stale"] and lineages[
        -1
    ].head.source == "native"
    assert lineages[0].weights != lineages[0].base
    assert stored(made[-1]) == {**SHARED, **PER_EXPERT}
    check_checkpoint(made[-1], content=True)
