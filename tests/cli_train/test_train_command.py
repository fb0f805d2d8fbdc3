"""`harnessctl train` over a stage that is a fake: recipes, start, budget, run folder, interruption, resumption."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import torch
from safetensors.torch import load_file

from harnessctl.checkpoint.policy import read_lineage
from harnessctl.errors import CheckpointError
from harnessctl.train import start
from harnessctl.train.metrics import read_metrics
from tests.cli.conftest import Result
from tests.cli_train.fake_stage import run_program
from tests.train_core.conftest import Processes

Train = Callable[..., Result]


def runs(studio: Path, stage: str) -> list[Path]:
    """The runs of a stage, oldest first; names of the same second are in no order."""
    found = [path for path in (studio / "runs").glob(f"*-{stage}-*") if not path.is_symlink()]
    return sorted(found, key=lambda path: str(orjson.loads((path / "run.json").read_bytes())["started"]))


def test_a_stage_leaves_a_checkpoint_with_its_lineage_and_says_what_it_costs_before(train: Train, studio: Path):
    done = train("sft", "model=tiny", "--json")
    assert done.code == 0, done.err
    folder = Path(done.json["run"])
    assert done.json["checkpoint"] == str(folder / "checkpoint")
    assert done.json["steps"] == 3 and done.json["last"]["loss"] > 0
    lineage = read_lineage(folder / "checkpoint")
    assert lineage is not None and (lineage.stage, lineage.steps, lineage.data) == ("sft", 3, "0" * 64)
    record = orjson.loads((folder / "run.json").read_bytes())
    assert (record["job"], record["status"], record["bundle"]) == ("sft", "done", lineage.bundles[0])
    assert record["extra"]["weights"] == lineage.parent and record["extra"]["template"] == lineage.template
    assert record["extra"]["budget"]["tokens"] == 48
    assert [line["step"] for line in read_metrics(folder)] == [1, 2, 3]
    assert list((folder / "tensorboard").iterdir())
    report = (folder / "report.md").read_text()
    assert "| step | loss |" in report and "- status: done" in report
    assert (studio / "runs" / "latest-sft").resolve() == folder
    said = done.err.splitlines()
    assert said[0].startswith("start: ") and "the model's own path" in said[0]
    assert said[1] == "budget: 3 steps, 48 tokens forward and backward (one sentence a step)"
    assert said[2].startswith("time: about ") and "from one micro-batch timed here" in said[2]
    assert "sft 3/3" in said[-2] and "loss " in said[-2] and "tokens/s " in said[-2]
    assert said[-1] == f"report: {folder / 'report.md'}"
    assert "accuracy 0.500" in said[-2] and "discarded 25%" in said[-2] and "CoT tool 3.0" in said[-2]


def test_the_checkpoint_is_what_stdout_has(train: Train):
    done = train("sft", "model=tiny", "loop.steps=1")
    assert done.out.strip().endswith("/checkpoint") and Path(done.out.strip()).is_dir()


def test_a_stage_begins_from_the_newest_earlier_stage_of_the_same_model(train: Train, studio: Path):
    assert train("rl", "model=tiny", "loop.steps=1").code == 0
    assert train("sft", "model=tiny", "loop.steps=1").code == 0
    assert "the model's own path" in train("sft", "model=tiny", "loop.steps=1").err
    assert "the model's own path" in train("rl", "model=tiny", "model.name=other", "loop.steps=1").err
    done = train("rl", "model=tiny", "loop.steps=1", "--json")
    assert f"start: the checkpoint of sft in {runs(studio, 'sft')[-1]}" in done.err
    lineage = read_lineage(Path(done.json["checkpoint"]))
    parent = read_lineage(runs(studio, "sft")[-1] / "checkpoint")
    assert lineage is not None and parent is not None
    assert lineage.parent == parent.weights and lineage.base == parent.base


def test_a_real_training_never_begins_from_a_debug_one_by_itself(train: Train, studio: Path):
    assert train("sft", "model=tiny", "debug=true").code == 0
    assert "the model's own path" in train("rl", "model=tiny", "loop.steps=1").err
    given = train("rl", "model=tiny", "loop.steps=1", "start=runs/latest-sft")
    said = f"start: {runs(studio, 'sft')[0]}/checkpoint "
    assert f"{said}(warning: a checkpoint of sft that was made with debug=true)" in given.err
    given = train("rl", "model=tiny", "debug=true", "loop.steps=1", "start=runs/latest-sft")
    assert f"{said}(a checkpoint of sft)" in given.err
    assert "the checkpoint of sft in" in train("opd", "model=tiny", "debug=true", "loop.steps=1").err


def test_what_lies_in_the_newest_run_is_named_by_that_run(train: Train, studio: Path):
    assert train("sft", "model=tiny", "loop.steps=1").code == 0
    (first,) = runs(studio, "sft")
    assert f"start: {first}/checkpoint" in train("sft", "model=tiny", "start=runs/latest-sft/checkpoint", "--cfg").out
    assert train("sft", "model=tiny", "loop.steps=1", "start=runs/latest-sft/checkpoint").code == 0
    assert str(first) in (runs(studio, "sft")[-1] / "config.yaml").read_text()
    assert "start: runs/latest-none\n" in train("sft", "model=tiny", "start=runs/latest-none", "--cfg").out


def test_debug_has_its_values_where_none_is_given(train: Train):
    done = train("sft", "model=tiny", "debug=true", "length=12", "--cfg")
    assert "steps: 2" in done.out and "length: 12" in done.out
    assert "steps: 3" in train("sft", "model=tiny", "--cfg").out
    assert train("sft", "model=tiny", "--cfg", "--json").json["loop"]["steps"] == 3


def test_a_key_of_in_debug_that_is_not_there_is_named(train: Train):
    done = train("sft", "model=tiny", "debug=true", "+in_debug.lenght=3", "--cfg")
    assert done.code == 2 and "'lenght'" in done.err


def test_model_picks_a_recipe_or_is_a_folder(train: Train, _model: Path):
    shown = train("sft", f"model={_model}", "--cfg")
    assert f"path: {_model}" in shown.out and "name: tiny" in shown.out
    wrong = train("sft", "model=tyny")
    assert wrong.code == 2 and "neither a recipe of sft (" in wrong.err and "tiny" in wrong.err
    assert train("sft", "model=tiny", "recipe=default").code == 2


def test_a_stage_that_is_none_and_a_key_that_is_none(train: Train):
    assert train("sfd").code == 2
    wrong = train("sft", "model=tiny", "lenght=3")
    assert wrong.code == 2 and "did you mean length" in wrong.err
    wrong = train("sft", "model=tiny", "loop.lr=0")
    assert wrong.code == 2 and "loop.lr" in wrong.err


def test_a_gpu_recipe_is_refused_before_anything_is_loaded(train: Train, studio: Path):
    done = train("sft", "model=tiny", "needs.gpus=8", "model.path=/nowhere")
    assert done.code == 1 and "needs 8 GPUs" in done.err and "model=nano" in done.err
    done = train("sft", "model=tiny", "model.device=cuda", "model.path=/nowhere")
    assert done.code == 1 and "sees no GPU" in done.err
    assert not runs(studio, "sft")


def test_a_draft_head_that_is_claimed_and_not_there_is_refused_before_anything_is_trained(
    train: Train, studio: Path, monkeypatch: pytest.MonkeyPatch
):
    def lacking(folder: Path) -> None:
        raise CheckpointError(f"{folder}: config.json claims 1 layer of a draft head, and 19 of 19 tensors are missing")

    # A model of a family that has heads takes long to make; what is found missing is the tests' of the checkpoint.
    monkeypatch.setattr(start, "check_head", lacking)
    for stage in ("sft", "opd"):
        done = train(stage, "model=tiny", "loop.steps=1")
        assert done.code == 1 and "claims 1 layer of a draft head" in done.err and not runs(studio, stage)
    done = train("rl", "model=tiny", "loop.steps=1")
    assert done.code == 0 and "warning: " in done.err and "claims 1 layer of a draft head" in done.err


def test_nothing_to_begin_from_leaves_no_run(train: Train, studio: Path):
    done = train("rl", "model=tiny", "model.path=null")
    assert done.code == 2 and "harnessctl train opd model=tiny" in done.err
    done = train("rl", "model=tiny", "model.path=/nowhere")
    assert done.code == 2 and not runs(studio, "rl")


def test_an_interrupted_training_goes_on_as_if_it_had_not_been(train: Train, studio: Path):
    stage = sys.modules["harnessctl.train.sft.stage"].STAGE
    whole = train("sft", "model=tiny", "loop.steps=5", "--json").json
    stage.interrupt_at = 3
    broken = train("sft", "model=tiny", "loop.steps=5", "--json")
    assert broken.code == 130 and broken.json["status"] == "interrupted" and broken.json["checkpoint"] is None
    folder = broken.json["run"]
    assert f"harnessctl train sft --resume {folder}" in broken.err
    stage.interrupt_at = None
    done = train("sft", "--resume", folder, "--json")
    assert done.code == 0 and "3 of 5 steps are kept" in done.err
    one, other = (read_lineage(Path(run["checkpoint"])) for run in (whole, done.json))
    assert one is not None and other is not None and one.weights == other.weights
    assert [line["step"] for line in read_metrics(Path(folder))] == [1, 2, 3, 4, 5]
    again = train("sft", "--resume", folder)
    assert again.code == 0 and "is done already" in again.err


def test_a_run_goes_on_with_its_own_config_bundle_and_start(train: Train, studio: Path):
    stage = sys.modules["harnessctl.train.sft.stage"].STAGE
    stage.interrupt_at = 2
    folder = train("sft", "model=tiny", "--json").json["run"]
    stage.interrupt_at = None
    wrong = train("sft", "--resume", folder, "loop.lr=0.5")
    assert wrong.code == 2 and "loop.lr would make it another" in wrong.err
    assert train("rl", "--resume", folder).code == 2
    skill = next((studio / "skills").glob("*/SKILL.md"))
    text = skill.read_text()
    skill.write_text(text.replace("## Rules", "## Rules\n- Be kind. {#kind}", 1))
    wrong = train("sft", "--resume", folder)
    assert wrong.code == 2 and "another bundle" in wrong.err
    skill.write_text(text)
    assert train("sft", "--resume", folder, "loop.keep=1").code == 0


def test_a_loss_that_is_no_number_stops_with_the_step_and_keeps_the_last_state(
    train: Train, monkeypatch: pytest.MonkeyPatch
):
    from tests.cli_train.fake_stage import Sentence

    data = Sentence.loss

    def broken(self, micro):
        loss, shown = data(self, micro)
        self.calls = getattr(self, "calls", 0) + 1
        return (loss * float("nan") if self.calls == 3 else loss), shown

    monkeypatch.setattr(Sentence, "loss", broken)
    done = train("sft", "model=tiny", "loop.steps=5")
    assert done.code == 1
    assert "step 3: the loss is not a number; the last good state is that of step 2" in done.err
    assert "--resume" in done.err


def test_a_sweep_makes_a_run_each(train: Train, studio: Path):
    done = train("sft", "-m", "model=tiny", "seed=1,2", "loop.steps=1", "--json")
    assert done.code == 0 and len(done.json) == 2 and len(runs(studio, "sft")) == 2
    assert train("sft", "-m", "model=tiny", "seed=1,2", "--run-dir", "x").code == 2


@pytest.mark.slow
def test_two_processes_make_one_run(train: Train, studio: Path, processes: Processes):
    alone = train("sft", "model=tiny", "--json").json
    assert processes.together(run_program, studio, ["train", "sft", "model=tiny", "--run-dir", "both"]) == [0, 0]
    both = studio / "both"
    assert orjson.loads((both / "run.json").read_bytes())["status"] == "done"
    assert [line["step"] for line in read_metrics(both)] == [1, 2, 3]
    one, two = (load_file(Path(f) / "checkpoint" / "model.safetensors") for f in (alone["run"], both))
    assert all(torch.allclose(value, two[name], rtol=0, atol=1e-6) for name, value in one.items())
