from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import Result
from tests.cli.conftest import harnessctl as harnessctl
from tests.cli.conftest import shop as shop
from tests.cli_train.fake_stage import RECIPE, enter
from tests.train_core.conftest import processes as processes
from tests.train_core.conftest import write_model


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def _model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def studio(shop: Path, _model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose stages are all the fake one, with a recipe `tiny` for each."""
    for stage in ("base", "sft", "opd", "rl", "mtp-adapt"):
        enter(monkeypatch, stage)
        for name in ("tiny", "default"):
            path = shop / "recipes" / stage / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(RECIPE.replace("MODEL", str(_model)))
    return shop


@pytest.fixture
def train(harnessctl: Callable[..., Result], studio: Path) -> Callable[..., Result]:
    """Runs `harnessctl train` in the project of `studio`."""

    def run(*arguments: str) -> Result:
        return harnessctl("train", *arguments, cwd=studio)

    return run
