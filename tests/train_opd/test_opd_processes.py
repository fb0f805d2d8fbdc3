"""Kill -9 and resume is as an unbroken run; two processes are as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file

from harnessctl.train.metrics import read_metrics
from harnessctl.train.opd.config import OpdConfig
from harnessctl.train.opd.prompts import Prompt
from harnessctl.train.opd.student import Answers, Student
from tests.train_core.conftest import Processes
from tests.train_opd.test_opd_training import PROMPTS, job_of
from tests.train_opd.test_opd_training import base as base
from tests.train_opd.test_opd_training import tuned as tuned
from tests.train_sft.sft_models import sequences
from tests.train_sft.sft_process import ready, train

pytestmark = pytest.mark.slow


def train_on_given(folder: Path, root: Path, start: Path, config: OpdConfig, *, environment: Mapping[str, str]) -> None:
    """The stage with made-up answers in the place of sampled ones."""

    def answer(_: Student, prompts: Sequence[Prompt]) -> Answers:
        return Answers([made for one in prompts for made in sequences(20, vocabulary=200, seed=one.seed)], cut=0)

    Student.answer = answer
    train(folder, root, start, "opd", config, environment=environment)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with pytest.MonkeyPatch.context() as environment:
        yield ready(environment)


def test_a_shared_out_policy_and_its_copy_are_as_whole_ones(tuned: Path, processes: Processes, tmp_path: Path) -> None:
    """Answers are not sampled from sharded weights: both trainings learn from the same ones."""
    config = job_of(tmp_path, tuned, None, lora=True, loop={"steps": 2}, base="copy", prompts_per_step=4).config
    shared = msgspec.structs.replace(config, sharding="fsdp2")
    environment = {"OMP_NUM_THREADS": "1"}
    assert processes.together(train_on_given, tmp_path / "whole", tmp_path, tuned, config, **environment) == [0, 0]
    assert processes.together(train_on_given, tmp_path / "shared", tmp_path, tuned, shared, **environment) == [0, 0]
    whole, found = (load_file(tmp_path / name / "checkpoint/model.safetensors") for name in ("whole", "shared"))
    for name, value in whole.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-4)
    assert read_metrics(tmp_path / "whole")[1]["loss"] == pytest.approx(
        read_metrics(tmp_path / "shared")[1]["loss"], rel=1e-4
    )


def test_kill_9_and_two_processes(tuned: Path, processes: Processes, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(f'{{"prompt": "{text}"}}\n' for text in PROMPTS))
    config = job_of(tmp_path, tuned, prompts, lora=True, loop={"steps": 5}, prompts_per_step=5).config
    folders = {name: tmp_path / name for name in ("whole", "killed", "two")}
    asked = {name: (folder, tmp_path, tuned, "opd", config) for name, folder in folders.items()}
    assert processes.run(train, *asked["whole"]) == 0
    assert processes.run(train, *asked["killed"], kill_step=3) == -9
    assert processes.run(train, *asked["killed"]) == 0
    assert processes.together(train, *asked["two"], OMP_NUM_THREADS="1") == [0, 0]
    weights = {name: load_file(folder / "checkpoint/model.safetensors") for name, folder in folders.items()}
    lines = {name: read_metrics(folder) for name, folder in folders.items()}
    for name, value in weights["whole"].items():
        assert torch.equal(value, weights["killed"][name]), name
        torch.testing.assert_close(weights["two"][name], value, rtol=1e-3, atol=1e-4)
    for one, other, two in zip(lines["whole"], lines["killed"], lines["two"], strict=True):
        assert one["loss"] == other["loss"] and one["step"] == other["step"]
        assert two["loss"] == pytest.approx(one["loss"], rel=1e-3) and two["tokens"] == one["tokens"]
