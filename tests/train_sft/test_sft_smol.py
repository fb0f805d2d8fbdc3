"""A real model: a short fine-tune of SmolLM2-135M through low-rank adapters lowers the held-out loss, saves and reloads."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harnessctl import recipes
from harnessctl.checkpoint.policy import check_checkpoint
from harnessctl.compile.revision import compiled
from harnessctl.decode.catalog import locate
from harnessctl.decode.weights import load_weights
from harnessctl.errors import HarnessctlError
from harnessctl.train.job import Job
from harnessctl.train.metrics import Metrics, read_metrics
from harnessctl.train.sft.config import SftConfig
from harnessctl.train.sft.stage import STAGE


@pytest.mark.slow
def test_smol_learns_saves_and_reloads(repository: Path, tmp_path: Path) -> None:
    try:
        start = locate("smol").path
    except HarnessctlError:
        pytest.skip("the model smol is not here: harnessctl models pull smol")
    keys = ["debug=true", "loop.steps=8", "loop.lr=1e-3", "eval_every=8", "data.n=10"]
    overrides = recipes.for_model(repository, "sft", ["model=smol", *keys])
    plain = recipes.debugged(recipes.compose(repository, "sft", overrides), overrides)
    config = recipes.typed(plain, SftConfig, job="train sft")
    bundle = compiled(repository, "mini")
    with Metrics(tmp_path, board=False) as metrics:
        job = Job(repository, tmp_path, config, bundle, {}, start, metrics, print, stage="sft", recipe=plain)
        STAGE.run(job)
    held_out = [line["held_out/loss"] for line in read_metrics(tmp_path) if "held_out/loss" in line]
    assert held_out[-1] < 0.9 * held_out[0]
    check_checkpoint(job.checkpoint, content=True)
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    with torch.no_grad():
        again = load_weights(job.checkpoint, dtype="float32", device="cpu").model(input_ids=ids).logits
        torch.testing.assert_close(again, job.policy.model(input_ids=ids).logits, rtol=1e-3, atol=2e-2)
