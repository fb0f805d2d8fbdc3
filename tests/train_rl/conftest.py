"""What the tests of the stage rl share."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.train.config import PolicyConfig
from harnessctl.train.policy import Policy, load_policy
from tests.evaluate.evaluate_stall import write_stall
from tests.train_rl.rl_project import Project, write_policy


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny policy."""
    return write_policy(tmp_path_factory.mktemp("policies") / "tiny")


@pytest.fixture
def policy(tiny: Path) -> Policy:
    return load_policy(PolicyConfig(name="tiny", dtype="float32", device="cpu"), tiny)


@pytest.fixture(scope="session")
def mini(repository: Path) -> Bundle:
    return compiled(repository, "mini")


@pytest.fixture
def project(repository: Path, mini: Bundle, tiny: Path) -> Project:
    return Project(repository, mini, tiny)


@pytest.fixture(scope="session")
def stall_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stall(tmp_path_factory.mktemp("rl-stall"))


@pytest.fixture(scope="session")
def stall_bundle(stall_root: Path) -> Bundle:
    return compiled(stall_root, None)


@pytest.fixture
def stall(stall_root: Path, stall_bundle: Bundle, tiny: Path) -> Project:
    """A project with short prompts."""
    return Project(stall_root, stall_bundle, tiny)
