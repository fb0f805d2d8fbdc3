"""Kill -9 and resume is as an unbroken run; two processes are as one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import load_file

from harnessctl.train.metrics import read_metrics
from tests.train_core.conftest import Processes
from tests.train_sft.sft_process import ready, train
from tests.train_sft.sft_project import Project, sft_config

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with pytest.MonkeyPatch.context() as environment:
        yield ready(environment)


@pytest.fixture(scope="module")
def config() -> Any:
    return sft_config(loop={"steps": 5}, data={"n": 5, "eval_share": 0.2}, micro_batches=3)


@pytest.fixture(scope="module")
def whole(project: Project, processes: Processes, config: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    assert processes.run(train, folder, project.root, project.model, "sft", config) == 0
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "checkpoint/model.safetensors")


def test_kill_9_and_resume_is_as_unbroken(
    project: Project, processes: Processes, config: Any, whole: Path, tmp_path: Path
) -> None:
    asked = (tmp_path, project.root, project.model, "sft", config)
    assert processes.run(train, *asked, kill_step=3) == -9
    assert not (tmp_path / "checkpoint").exists()
    assert processes.run(train, *asked) == 0
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(tmp_path)[name]), name
    lines = [[(line["step"], line.get("loss")) for line in read_metrics(folder)] for folder in (whole, tmp_path)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("sharding", ["none", "fsdp2"])
def test_two_processes_are_as_one(
    project: Project, processes: Processes, config: Any, whole: Path, tmp_path: Path, sharding: str
) -> None:
    """Three micro-batches for two processes: one of them has nothing in its second."""
    asked = (tmp_path, project.root, project.model, "sft", msgspec.structs.replace(config, sharding=sharding))
    assert processes.together(train, *asked, OMP_NUM_THREADS="1") == [0, 0]
    for one, other in zip(read_metrics(whole), read_metrics(tmp_path), strict=True):
        for name in {"loss", "grad_norm", "held_out/loss", "token_accuracy"} & one.keys():
            assert one[name] == pytest.approx(other[name], rel=1e-4), name
    for name, value in weights(whole).items():
        torch.testing.assert_close(weights(tmp_path)[name], value, rtol=1e-3, atol=1e-4)
