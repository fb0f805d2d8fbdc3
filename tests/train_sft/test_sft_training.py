"""The stage from start to checkpoint: it learns, resumes, and stops where it must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sft_project import Project, sft_config

from harnessctl.errors import CheckpointError, TrainingError
from harnessctl.train.config import LoraConfig, PolicyConfig
from harnessctl.train.metrics import read_metrics
from harnessctl.train.sft import token_loss
from harnessctl.train.sft.stage import STAGE


def trained(project: Project, folder: Path, **keys: Any) -> dict[str, torch.Tensor]:
    job = project.job(folder, sft_config(**keys))
    STAGE.run(job)
    job.metrics.close()
    return load_file(folder / "checkpoint/model.safetensors")


def test_it_learns_and_says_what_it_was_made_of(project: Project, tmp_path: Path) -> None:
    before = load_file(project.model / "model.safetensors")
    after = trained(project, tmp_path, loop={"steps": 8, "lr": 1e-2}, harness="hsa")
    lines = read_metrics(tmp_path)
    assert lines[-2]["loss"] < 0.8 * lines[0]["loss"]
    assert lines[-1]["held_out/loss"] < 0.8 * lines[0]["held_out/loss"]
    assert before.keys() == after.keys() and not torch.equal(before["lm_head.weight"], after["lm_head.weight"])
    lineage = json.loads((tmp_path / "checkpoint/lineage.json").read_text())
    card = json.loads((tmp_path / "data/data.json").read_text())
    assert lineage["stage"] == "sft" and lineage["data"] == card["digest"]
    assert lineage["envelope"] == "paper" and project.bundle.digest in lineage["bundles"] and lineage["steps"] == 8


def test_broken_off_and_resumed_is_as_unbroken(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(project, tmp_path / "whole", loop={"steps": 4})
    real, calls = token_loss.cross_entropy, 0

    def breaks(logits: torch.Tensor, labels: torch.Tensor) -> Any:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise RuntimeError("the machine stopped")
        return real(logits, labels)

    with monkeypatch.context() as broken:
        broken.setattr("harnessctl.train.sft.objective.cross_entropy", breaks)
        with pytest.raises(RuntimeError, match="stopped"):
            trained(project, tmp_path / "broken", loop={"steps": 4})
    assert not (tmp_path / "broken/checkpoint").exists()
    again = trained(project, tmp_path / "broken", loop={"steps": 4})
    for name, value in whole.items():
        assert torch.equal(value, again[name]), name


def test_one_micro_batch_is_as_many(project: Project, tmp_path: Path) -> None:
    """The same samples in two micro-batches and in one, packed and padded: the same step."""
    keys: dict[str, Any] = {"harness": "fixed", "data": {"n": 3, "eval_share": 0.0}, "loop": {"steps": 1}}
    one = trained(project, tmp_path / "one", micro_tokens=10_000, **keys)
    padded = trained(project, tmp_path / "padded", micro_tokens=10_000, packing="off", **keys)
    lines = [read_metrics(tmp_path / name)[0] for name in ("one", "padded")]
    assert lines[0]["loss"] == pytest.approx(lines[1]["loss"], rel=1e-5)
    assert lines[0]["grad_norm"] == pytest.approx(lines[1]["grad_norm"], rel=1e-4)
    size = max(line["tokens"] for line in lines) // 2
    few = {**keys, "micro_tokens": size}
    probe = trained(project, tmp_path / "probe", **few)
    del probe
    epoch = read_metrics(tmp_path / "probe")[0]["epoch"]
    many = trained(project, tmp_path / "many", micro_batches=round(1 / epoch), **few)
    for name, value in one.items():
        torch.testing.assert_close(many[name], value, rtol=1e-3, atol=2e-4)
        torch.testing.assert_close(padded[name], value, rtol=1e-3, atol=2e-4)


def test_low_rank_adapters_are_merged_into_the_checkpoint(project: Project, tmp_path: Path) -> None:
    before = load_file(project.model / "model.safetensors")
    lora = PolicyConfig(name="tiny", dtype="float32", device="cpu", lora=LoraConfig(rank=2))
    after = trained(project, tmp_path, model=lora, loop={"steps": 2, "lr": 1e-2}, recompute=True)
    moved = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert moved == {name for name in before if name.endswith("_proj.weight")}


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_state(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = token_loss.cross_entropy
    calls = 0

    def spoilt(logits: torch.Tensor, labels: torch.Tensor) -> Any:
        nonlocal calls
        calls += torch.is_grad_enabled()
        loss, right = real(logits, labels)
        return loss * (float("nan") if calls > 3 else 1.0), right

    monkeypatch.setattr("harnessctl.train.sft.objective.cross_entropy", spoilt)
    with pytest.raises(TrainingError, match=r"step 4: the loss is not a number; the last good state is that of step 2"):
        trained(project, tmp_path, loop={"steps": 6})
    assert project.job(tmp_path, sft_config()).points().newest_step() == 2


def test_a_template_or_tokenizer_that_loses_text_is_refused_at_once(project: Project, tmp_path: Path) -> None:
    from sft_models import tiny_llama, tiny_tokenizer
    from tokenizers import normalizers

    folder = tmp_path / "lower"
    tokenizer = tiny_tokenizer()
    tokenizer.normalizer = normalizers.Lowercase()
    tiny_llama(vocabulary=tokenizer.get_vocab_size()).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    job = project.job(tmp_path / "run", sft_config(), start=folder)
    with pytest.raises((TrainingError, CheckpointError), match="tokenizer"):
        STAGE.run(job)
    assert not (tmp_path / "run/data").exists()
