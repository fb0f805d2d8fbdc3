"""The shipped recipes of the stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnessctl import recipes
from harnessctl.train.rl.config import RlConfig


def config(repository: Path, name: str, *keys: str) -> Any:
    plain = recipes.compose(repository, "rl", [f"recipe={name}", *keys])
    return recipes.typed(recipes.debugged(plain, list(keys)), RlConfig, job="train rl")


@pytest.mark.parametrize("name", ["default", "nano", "smol", "qwen3.6-35b-a3b"])
def test_each_is_whole_and_runs_on_a_cpu_with_debug(repository: Path, name: str) -> None:
    debug = config(repository, name, "debug=true")
    debug.check()
    assert (debug.needs.gpus, debug.sharding, debug.rollout.backend, debug.loop.steps) == (0, "none", "local", 2)
    text = (repository / "recipes" / "rl" / f"{name}.yaml").read_text()
    assert "harnessctl train rl model=" in text.partition("\n\n")[0]


def test_the_papers_numbers(repository: Path) -> None:
    found = config(repository, "qwen3.6-35b-a3b", "rollout.urls=[http://127.0.0.1:30000]")
    found.check()
    assert found.groups * found.loop.steps == found.items == 4000
    assert (found.needs.gpus, found.sharding, found.rollout.backend) == (8, "fsdp2", "sglang")


def test_default_is_nano(repository: Path) -> None:
    assert config(repository, "default") == config(repository, "nano")
