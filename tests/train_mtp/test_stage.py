"""The stage as a whole, on a policy that goes round and round."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM, PreTrainedModel

from harnessctl.checkpoint.export import head_tensors
from harnessctl.checkpoint.policy import check_checkpoint, next_lineage, read_lineage, save_checkpoint, weights_digest
from harnessctl.cli.project import open_bundle
from harnessctl.errors import CheckpointError, HarnessctlError, TrainingError, UsageError
from harnessctl.records.lineage import Lineage
from harnessctl.train.job import Job
from harnessctl.train.metrics import Metrics, read_metrics
from harnessctl.train.mtp.config import MtpConfig
from harnessctl.train.mtp.report import draft_report, read_run
from harnessctl.train.mtp.source import fresh_head, stored_head
from harnessctl.train.mtp.stage import STAGE
from tests.train_mtp.conftest import cycle, rollouts

REPOSITORY = Path(__file__).parents[2]
CONFIG: dict[str, Any] = {
    "model": {"name": "toy", "device": "cpu", "dtype": "float32"},
    "loop": {"steps": 16, "lr": 2e-2, "save_every": 5},
    "row_tokens": 64,
    "rows": 2,
    "heldout": 4,
    "source": "fresh",
}


def job(folder: Path, start: Path, talk: Callable[[str], None] = lambda text: None, **keys: Any) -> Job:
    config = msgspec.convert({**CONFIG, **keys}, MtpConfig)
    return Job(
        root=folder,
        folder=folder,
        config=config,
        bundle=None,
        judges={},
        start=start,
        metrics=Metrics(folder, board=False),
        talk=talk,
        stage="mtp-adapt",
        recipe=msgspec.to_builtins(config),
    )


def trained(folder: Path, start: Path, cycle_seed: int, **keys: Any) -> Lineage:
    """The lineage of what came out of a run on rollouts of that cycle."""
    path = rollouts(folder / "data" / "rollouts.jsonl", cycle(cycle_seed))
    given = job(folder, start, rollouts=str(path), **keys)
    STAGE.run(given)
    given.metrics.close()
    lineage = read_lineage(folder / "checkpoint")
    assert lineage is not None
    return lineage


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory, toy: Path) -> tuple[Path, Lineage]:
    """The toy policy with a head that was trained for it."""
    folder = tmp_path_factory.mktemp("followed")
    return folder, trained(folder, toy, 1, measure_every=10)


def test_a_head_learns_what_a_repetitive_policy_says(followed: tuple[Path, Lineage]) -> None:
    folder, lineage = followed
    before, after = lineage.head.acceptance["before"], lineage.head.acceptance["after"]
    assert before["greedy_length"] < 1.3
    assert min(after["greedy"]) > 0.85 and after["greedy_length"] > 3.5
    assert min(after["sampled"]) > 0.75
    assert (after["temperature"], after["threshold_single"], after["threshold_acc"]) == (1.0, 1.0, 1.0)
    lines = read_metrics(folder)
    assert lines[-1]["loss"] < 0.5 < 1.0 < lines[0]["loss"]
    assert {"loss/depth_0", "loss/depth_2", "hit/depth_1"} <= lines[0].keys()
    assert lines[0]["loss"] == pytest.approx(sum(lines[0][f"loss/depth_{k}"] for k in range(3)) / 3, rel=0.1)
    assert [line["step"] for line in lines if "acceptance/greedy_length" in line] == [11]
    assert lines[10]["acceptance/greedy_length"] > before["greedy_length"]
    report = (folder / "draft-head.md").read_text()
    assert "## Acceptance: fresh head, toy" in report and "fresh head, toy: loss/depth_2" in report
    assert not (folder / "hidden").exists(), "states that nobody asked to keep go when the run is done"


def test_the_policy_does_not_move(followed: tuple[Path, Lineage], toy: Path) -> None:
    folder, lineage = followed
    made = folder / "checkpoint"
    assert (made / "model.safetensors").read_bytes() == (toy / "model.safetensors").read_bytes()
    assert (made / "config.json").read_bytes() == (toy / "config.json").read_bytes()
    assert lineage.weights == lineage.parent == weights_digest(toy)
    check_checkpoint(made, content=True)
    head = head_tensors(made)
    assert len(head) == 13 and head["mtp.fc.weight"].shape == (32, 64)
    assert (lineage.stage, lineage.head.state, lineage.head.source, lineage.head.depths) == (
        "mtp-adapt",
        "trained",
        "fresh",
        3,
    )
    assert lineage.steps == 16 and lineage.data is not None


#: What a policy was trained with.
MADE_WITH: dict[str, Any] = {
    "bundles": ["b" * 64, "c" * 64],
    "harness": "mini-1",
    "world": "d" * 64,
    "template": "e" * 64,
    "envelope": "paper",
    "adapter": True,
}


def changed(folder: Path, before: Path, after: Path) -> Path:
    """The checkpoint `before` after a training that made its weights those of `after`; the head goes across."""
    lineage = next_lineage(before, stage="rl", recipe={}, **MADE_WITH)
    save_checkpoint(folder, source=before, changed=load_file(after / "model.safetensors"), lineage=lineage)
    return folder


def test_a_head_that_is_not_updated_falls_behind_its_policy(
    tmp_path: Path, followed: tuple[Path, Lineage], other: Path
) -> None:
    moved = changed(tmp_path / "moved", followed[0] / "checkpoint", other)
    lineage = trained(tmp_path / "run", moved, 2, source="auto")
    before, after = lineage.head.acceptance["before"], lineage.head.acceptance["after"]
    was = followed[1].head.acceptance["after"]
    assert before["greedy_length"] < 0.4 * was["greedy_length"], "the old head says the old policy's tokens"
    assert after["greedy_length"] > 0.95 * was["greedy_length"]
    assert lineage.head.source == "native"
    assert {name: getattr(lineage, name) for name in MADE_WITH} == MADE_WITH, "the policy's own, whose weights they are"


def test_grafted_beside_native(tmp_path: Path, followed: tuple[Path, Lineage], other: Path) -> None:
    """Two runs, each head on its own policy, and the curves of both in one table [5.5]."""
    heads = str(followed[0] / "checkpoint")
    lineage = trained(tmp_path, other, 2, source="grafted", graft=heads, beside=str(followed[0]))
    assert lineage.head.source == "grafted"
    report = (tmp_path / "draft-head.md").read_text()
    assert "| up to step | grafted head, toy: loss |" in report and "fresh head, toy: loss |" in report
    assert report.count("## Acceptance") == 2


@pytest.mark.parametrize("embeddings", ["teacher", "argmax"])
@pytest.mark.parametrize("weights", ["equal", "decay"])
def test_options(tmp_path: Path, toy: Path, embeddings: str, weights: str) -> None:
    lineage = trained(
        tmp_path,
        toy,
        1,
        embeddings=embeddings,
        weights=weights,
        labels="all",
        init="last_layer",
        hidden_dtype="float16",
        hidden=str(tmp_path / "kept"),
        model={"name": "toy", "device": "cpu", "dtype": "bfloat16" if weights == "decay" else "float32"},
        loop={"steps": 3, "lr": 1e-3},
        depths=2,
    )
    assert lineage.head.depths == 2 and (tmp_path / "kept" / "manifest.json").is_file()
    assert all(isinstance(line["loss/depth_1"], float) for line in read_metrics(tmp_path))


class _Dies(Metrics):
    def log(self, step: int, values: Mapping[str, float]) -> None:
        if step == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        super().log(step, values)


def test_killed_and_resumed_equals_unbroken(tmp_path: Path, followed: tuple[Path, Lineage], toy: Path) -> None:
    path = rollouts(tmp_path / "data" / "rollouts.jsonl", cycle(1))
    given = job(tmp_path, toy, rollouts=str(path), measure_every=10)
    child = os.fork()
    if child == 0:  # pragma: no cover (dies)
        object.__setattr__(given, "metrics", _Dies(tmp_path, board=False))
        STAGE.run(given)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert given.points().newest_step() == 5
    STAGE.run(given)
    given.metrics.close()
    whole, again = head_tensors(followed[0] / "checkpoint"), head_tensors(tmp_path / "checkpoint")
    assert whole.keys() == again.keys() and all(torch.equal(whole[name], again[name]) for name in whole)
    assert [line["loss"] for line in read_metrics(tmp_path)] == [line["loss"] for line in read_metrics(followed[0])]
    found = read_lineage(tmp_path / "checkpoint")
    assert found is not None and found.head.acceptance == followed[1].head.acceptance


def test_the_budget_is_told_before(tmp_path: Path, toy: Path) -> None:
    path = rollouts(tmp_path / "data" / "rollouts.jsonl", cycle(1))
    budget = STAGE.budget(job(tmp_path, toy, rollouts=str(path)))
    assert (budget.tokens_per_step, budget.steps, budget.before) == (128, 16, 24 * 12)
    assert budget.seconds is not None and budget.seconds > 0
    assert "24 sequences of 288 tokens" in budget.note
    assert not list(tmp_path.glob("hidden*"))


def test_rollouts_are_those_of_the_run_that_made_the_checkpoint(tmp_path: Path, toy: Path) -> None:
    made = tmp_path / "runs" / "x-rl-toy"
    rollouts(made / "rollouts.jsonl", cycle(1))
    (made / "checkpoint").symlink_to(toy)
    assert STAGE.budget(job(tmp_path / "run", made / "checkpoint")).before == 24 * 12
    with pytest.raises(TrainingError, match="trains under a harness, and none was given"):
        STAGE.budget(job(tmp_path / "run", toy))
    mini = replace(job(tmp_path / "run", toy), root=REPOSITORY, bundle=open_bundle("mini", REPOSITORY)[0])
    found = STAGE.budget(mini)
    assert found.sampled == 256 * 128 and "the policy answers 256 scenarios first" in found.note
    with pytest.raises(UsageError, match="no such file"):
        STAGE.budget(job(tmp_path / "run", toy, rollouts="nowhere"))


def fails(tmp_path: Path, start: Path, kind: type[HarnessctlError], match: str, **keys: Any) -> None:
    with pytest.raises(kind, match=match):
        trained(tmp_path, start, 1, **keys)
    assert not (tmp_path / "checkpoint").exists()


def test_what_cannot_be(tmp_path: Path, toy: Path, followed: tuple[Path, Lineage]) -> None:
    lora = {"name": "toy", "device": "cpu", "lora": {}}
    fails(tmp_path, toy, CheckpointError, "holds no draft head", source="native")
    fails(tmp_path, toy, UsageError, "graft names no checkpoint", source="grafted")
    fails(tmp_path, toy, UsageError, "is for source=grafted", graft="somewhere")
    fails(tmp_path, toy, UsageError, "takes no adapters", model=lora)
    fails(tmp_path, toy, UsageError, "sharding=fsdp2", sharding="fsdp2")
    narrow = LlamaForCausalLM.from_pretrained(toy).config.__class__(
        **{**LlamaForCausalLM.from_pretrained(toy).config.to_dict(), "intermediate_size": 20}
    )
    with pytest.raises(CheckpointError, match=r"does not fit the policy: .*down_proj.weight has the shape \[32, 48\]"):
        stored_head(LlamaForCausalLM(narrow), followed[0] / "checkpoint")


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"source": "native"}, "holds no draft head"),
        ({"source": "grafted"}, "graft names no checkpoint"),
        ({"source": "auto", "graft": "somewhere"}, "is for source=grafted"),
        ({"beside": "/nowhere"}, "no draft-head.json there"),
    ],
)
def test_a_head_that_is_not_to_be_had_is_said_before_anything_is_sampled(
    tmp_path: Path, toy: Path, keys: dict[str, Any], match: str
) -> None:
    with pytest.raises(HarnessctlError, match=match):
        STAGE.budget(job(tmp_path, toy, **keys))


def test_a_run_beside_one_of_the_same_name_keeps_its_own_curves(followed: tuple[Path, Lineage]) -> None:
    report = draft_report([read_run(followed[0])] * 2)
    assert "| fresh head, toy: loss |" in report and "| fresh head, toy (2): loss |" in report


def test_states_of_another_policy_are_refused(tmp_path: Path, toy: Path, other: Path) -> None:
    kept = str(tmp_path / "kept")
    trained(tmp_path / "one", toy, 1, hidden=kept, loop={"steps": 1, "lr": 1e-3})
    fails(tmp_path / "two", other, TrainingError, "hidden states of the policy", hidden=kept)


def test_a_fresh_head_is_the_same_in_every_process(toy: Path) -> None:
    model: PreTrainedModel = LlamaForCausalLM.from_pretrained(toy)
    one, two, last = (fresh_head(model, init=i, seed=5).state_dict() for i in ("random", "random", "last_layer"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    layer = model.model.layers[-1].state_dict()
    assert all(torch.equal(last[f"layers.0.{name}"], value) for name, value in layer.items())
    assert torch.equal(last["norm.weight"], model.model.norm.weight)
    assert torch.equal(last["fc.weight"], one["fc.weight"])
