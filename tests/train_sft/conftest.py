"""A project to train in; one thread, since tests share the machine."""

from __future__ import annotations

import pytest
import torch
from sft_project import Project


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.make(tmp_path_factory.mktemp("sft-project"))
