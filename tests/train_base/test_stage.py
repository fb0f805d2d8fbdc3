"""The stage from a model's folder to a checkpoint."""

from __future__ import annotations

import json

import pytest
from safetensors.torch import load_file

from harnessctl.checkpoint.policy import check_checkpoint, read_lineage, weights_digest
from harnessctl.errors import UsageError
from harnessctl.train.base.measure import measure
from harnessctl.train.base.stage import STAGE
from harnessctl.train.config import PolicyConfig
from harnessctl.train.metrics import read_metrics
from harnessctl.train.policy import load_policy

MAKE = {
    "layers": 3,
    "width": 32,
    "heads": 4,
    "head_dim": 16,
    "neurons": 24,
    "vocabulary": {"size": 500, "variants": 0, "items": 20},
}
MODEL = PolicyConfig(name="tiny", device="cpu", dtype="float32")


def test_a_made_model_is_trained_and_begins_a_line(make_job, source):
    job = make_job(make=MAKE, context={"share": 0.2}, tasks={"relabel": 1.0, "ease": 0.5, "grow_over": 2})
    budget = STAGE.budget(job)
    assert budget.tokens == 3 * 1500 and budget.seconds
    STAGE.run(job)
    check_checkpoint(job.checkpoint, content=True)
    config = json.loads((job.checkpoint / "config.json").read_text())
    assert (config["num_hidden_layers"], config["intermediate_size"]) == (3, 24)
    lineage = read_lineage(job.checkpoint)
    assert lineage is not None
    assert lineage.parent == weights_digest(source) and lineage.parent_path == str(source)
    assert lineage.base == lineage.weights == weights_digest(job.checkpoint)
    assert (lineage.stage, lineage.steps, lineage.harness) == ("base", 3, None)
    policy = load_policy(MODEL, job.checkpoint)
    assert policy.lineage == lineage
    shares = measure(policy, 0, 1, tasks=["copy"])
    assert set(shares) == {"copy"} and 0.0 <= shares["copy"] <= 1.0


def test_sharded_weights_are_not_compiled(make_job):
    with pytest.raises(UsageError, match="compile=true with sharding=fsdp2"):
        STAGE.budget(make_job(compile=True, sharding="fsdp2"))


def test_metrics_say_what_was_exact(make_job):
    job = make_job()
    STAGE.run(job)
    lines = read_metrics(job.folder)
    assert [line["step"] for line in lines] == [1, 2, 3, 3]
    assert ["exact/lookup" in line for line in lines] == [True, False, True, True]
    assert lines[2]["loss"] < lines[0]["loss"]
    assert all(line["tokens"] <= 1500 for line in lines[:3])


def test_a_run_that_is_taken_up_again_ends_the_same(make_job):
    whole, broken = make_job(make=MAKE), make_job(folder="broken", make=MAKE)
    STAGE.run(whole)

    class Stop(Exception):
        pass

    show = broken.metrics.log

    def stopping(step, values):
        show(step, values)
        if step == 2:
            raise Stop

    broken.metrics.log = stopping
    with pytest.raises(Stop):
        STAGE.run(broken)
    broken.metrics.log = show
    again = make_job(folder="broken", make=MAKE)
    STAGE.run(again)
    first, second = (load_file(job.checkpoint / "model.safetensors") for job in (whole, again))
    assert all((first[name] == second[name]).all() for name in first)


def test_adapters_are_merged(make_job, source):
    job = make_job(model={"name": "tiny", "device": "cpu", "dtype": "float32", "lora": {"rank": 4}})
    STAGE.run(job)
    lineage = read_lineage(job.checkpoint)
    assert lineage is not None and lineage.adapter and lineage.base == lineage.weights != lineage.parent
    assert json.loads((job.checkpoint / "config.json").read_text()) == json.loads((source / "config.json").read_text())
