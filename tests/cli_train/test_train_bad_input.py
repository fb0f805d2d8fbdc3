"""What an operator may get wrong with `harnessctl train`: said before anything is spent, and never as a traceback."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.cli.conftest import Result

Train = Callable[..., Result]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("+loop.betas=[0.9,1.5]", "loop.betas[1]: Expected `float` < 1.0 (got 1.5)"),
        ("+loop.betas=[-1,0.9]", "loop.betas[0]"),
        ("seed=4294967296", "seed: Expected `int` <= 4294967295"),
    ],
)
def test_numbers_that_the_optimizer_or_a_generator_would_choke_on(train: Train, key: str, said: str) -> None:
    done = train("sft", "model=tiny", key)
    assert done.code == 2 and said in done.err


def test_what_is_given_whole_takes_no_values_of_debug_inside_it(train: Train) -> None:
    done = train("sft", "model=tiny", "debug=true", "loop={steps: 9, lr: 0.1}", "--cfg")
    assert "steps: 9" in done.out and "length: 8" in done.out


def test_a_run_folder_that_is_not_free_is_named_before_a_model_is_read(train: Train, studio: Path) -> None:
    done = train("sft", "model=tiny", "--run-dir", str(studio))
    assert done.code == 2 and "is not empty" in done.err and "start:" not in done.err


def test_the_command_that_is_proposed_can_be_pasted(train: Train) -> None:
    done = train("sft", "model=tiny", "+sharding=fsdp2", "model.lora={rank: 4}")
    assert done.code == 1 and "-m harnessctl train sft model=tiny +sharding=fsdp2 'model.lora={rank: 4}'" in done.err


def test_what_began_from_a_relative_path_is_told_by_an_absolute_one(train: Train, studio: Path, _model: Path) -> None:
    done = train("sft", "model=tiny", f"model.path={os.path.relpath(_model, studio)}", "loop.steps=1", "--json")
    lineage = orjson.loads((Path(done.json["checkpoint"]) / "lineage.json").read_bytes())
    assert lineage["base_path"] == lineage["parent_path"] == str(_model.resolve())
    run = orjson.loads((Path(done.json["run"]) / "run.json").read_bytes())
    assert run["extra"]["start"] == str(_model.resolve())


def broken_off(train: Train) -> Path:
    """A run that was interrupted after its second step."""
    stage = sys.modules["harnessctl.train.sft.stage"].STAGE
    stage.interrupt_at = 2
    done = train("sft", "model=tiny", "loop.steps=4", "--json")
    stage.interrupt_at = None
    assert done.code == 130
    return Path(done.json["run"])


def test_a_resumed_run_that_another_process_holds_is_left_as_it_is(train: Train) -> None:
    folder = broken_off(train)
    before = (folder / "run.json").read_bytes()
    with (folder / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = train("sft", "--resume", str(folder))
    assert done.code == 2 and "another process is writing" in done.err
    assert (folder / "run.json").read_bytes() == before


def test_a_state_that_is_damaged_is_passed_over_and_named(train: Train) -> None:
    folder = broken_off(train)
    newest = sorted((folder / "points").glob("*.safetensors"))[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    done = train("sft", "--resume", str(folder), "--json")
    assert done.code == 0 and "is passed over: step 2" in done.err and "0 of 4 steps are kept" in done.err
    assert done.json["status"] == "done" and done.json["steps"] == 4
