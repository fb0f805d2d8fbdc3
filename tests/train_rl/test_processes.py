"""Two processes equal one, and a run that was killed and resumed equals one that was not."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from harnessctl.train.metrics import read_metrics
from tests.train_core.conftest import Processes
from tests.train_rl.rl_processes import train_made

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with pytest.MonkeyPatch.context() as environment:
        yield Processes(environment)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "weights.safetensors")


def test_two_processes_equal_one(processes: Processes, tiny: Path, tmp_path: Path) -> None:
    alone, both = tmp_path / "alone", tmp_path / "both"
    assert processes.run(train_made, alone, tiny) == 0
    assert processes.together(train_made, both, tiny, OMP_NUM_THREADS="1") == [0, 0]
    for name, value in weights(alone).items():
        torch.testing.assert_close(weights(both)[name], value, atol=1e-4, rtol=1e-3)
    for one, other in zip(read_metrics(alone), read_metrics(both), strict=True):
        for name in ("loss", "tokens", "discarded", "unscored", "reward/accuracy", "entropy", "mismatch"):
            assert other[name] == pytest.approx(one[name], abs=1e-3)


def test_killed_and_resumed_equals_unbroken(processes: Processes, tiny: Path, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert processes.run(train_made, whole, tiny) == 0
    assert processes.run(train_made, broken, tiny, kill_group=9) == -signal.SIGKILL
    assert len(read_metrics(broken)) == 3
    assert processes.run(train_made, broken, tiny) == 0
    assert all(weights(broken)[name].equal(value) for name, value in weights(whole).items())
    assert [line["loss"] for line in read_metrics(broken)] == [line["loss"] for line in read_metrics(whole)]
