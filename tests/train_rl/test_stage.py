"""The whole stage with a tiny random policy: on the shipped mini harness, resumed, and with a server that samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file
from transformers import Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig

from harnessctl.checkpoint.export import export_head, head_tensors
from harnessctl.checkpoint.policy import next_lineage, read_lineage
from harnessctl.errors import TrainingError, UsageError
from harnessctl.storage import read_json_lines
from harnessctl.train.config import PolicyConfig
from harnessctl.train.metrics import Metrics, read_metrics
from harnessctl.train.mtp.head import full_names
from harnessctl.train.mtp.source import fresh_head
from harnessctl.train.policy import load_policy
from harnessctl.train.rl import stage
from harnessctl.train.rl.config import RolloutConfig
from harnessctl.train.rl.objective import RlObjective
from harnessctl.train.rl.stage import STAGE
from tests.decode.conftest import make_tokenizer
from tests.train_rl.rl_project import LowIds, Project, rl_config
from tests.train_rl.rl_server import FakeServer

SHORT: dict[str, Any] = {"groups": 1, "sampling": {"max_tokens": 4}}


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards that differ: a random policy's replies are all wrong alike."""
    monkeypatch.setattr(stage, "RuleReward", LowIds)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.close()


def test_two_steps_on_the_mini_harness(project: Project, tmp_path: Path) -> None:
    job = project.job(tmp_path, rl_config(variant_share=0.5))
    budget = STAGE.budget(job)
    assert budget.tokens_per_step > 100
    assert "prompts of" in budget.note
    STAGE.run(job)
    lines = read_metrics(tmp_path)
    assert [line["step"] for line in lines] == [1, 2]
    assert lines[0]["rollouts"] == 4
    assert sum(value for name, value in lines[0].items() if name.startswith("stop/")) == 1.0
    assert {"reward/accuracy", "reward/tool_rationality", "cot/tool", "discarded", "unscored"} <= lines[0].keys()
    lineage = read_lineage(job.checkpoint)
    assert lineage is not None
    assert (lineage.stage, lineage.envelope) == ("rl", "paper")
    assert lineage.world
    kept = [line for _, line in read_json_lines(tmp_path / "rollouts.jsonl")]
    assert len(kept) == 8
    seen = {line["trajectory"]["bundle"] for line in kept}
    assert lineage.bundles == sorted(seen) and project.bundle.digest in seen and len(seen) > 1
    assert len({line["trajectory"]["id"] for line in kept}) == 8
    variants = {line["group"]: line.get("variant") for line in kept}
    assert {line["trajectory"]["bundle"] == project.bundle.digest for line in kept if "variant" not in line} <= {True}
    assert len(variants) == 4
    assert any(v is not None for v in variants.values())
    assert any(v is None for v in variants.values())


@pytest.mark.usefixtures("graded")
@pytest.mark.parametrize(
    ("end", "keys"),
    [
        (KeyboardInterrupt, {}),
        # Nothing was kept, and the rollouts that were written are taken back.
        (RuntimeError, {"save_every": 2}),
        # The policy that the KL term draws back to is that of the start, not that of the point.
        (KeyboardInterrupt, {"kl": 0.5}),
    ],
)
def test_resumed_equals_unbroken(
    stall: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: type[BaseException], keys: dict[str, Any]
) -> None:
    loop = {"steps": 2, "lr": 0.01, "schedule": "constant", "save_every": keys.get("save_every", 1)}
    config = rl_config(**SHORT, loop=loop, kl=keys.get("kl", 0.0))
    STAGE.run(stall.job(tmp_path / "whole", config))
    data = RlObjective.data

    def broken(self: RlObjective, step: int) -> Any:
        if step == 1:
            raise end
        return data(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(RlObjective, "data", broken)
        with pytest.raises(end):
            STAGE.run(stall.job(tmp_path / "broken", config))
    again = stall.job(tmp_path / "broken", config, metrics=Metrics(tmp_path / "broken", board=False))
    STAGE.run(again)
    whole, resumed = (load_file(tmp_path / name / "checkpoint" / "model.safetensors") for name in ("whole", "broken"))
    start = load_file(stall.model / "model.safetensors")
    assert any(not whole[name].equal(start[name]) for name in start)
    assert all(whole[name].equal(resumed[name]) for name in whole)
    first, second = (read_metrics(tmp_path / name) for name in ("whole", "broken"))
    timed = ("seconds", "per_second")
    for one, other in zip(first, second, strict=True):
        assert {k: v for k, v in one.items() if not any(t in k for t in timed)} == {
            k: v for k, v in other.items() if not any(t in k for t in timed)
        }
    ids = [
        [line["trajectory"]["paths"] for _, line in read_json_lines(tmp_path / name / "rollouts.jsonl")]
        for name in ("whole", "broken")
    ]
    assert ids[0] == ids[1]


@pytest.mark.usefixtures("graded")
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_rollouts_have_the_log_probabilities_that_training_finds(
    stall: Project, tmp_path: Path, temperature: float
) -> None:
    sampling = {"max_tokens": 4, "temperature": temperature}
    STAGE.run(stall.job(tmp_path, rl_config(**SHORT | {"sampling": sampling}, loop={"steps": 1})))
    (line,) = read_metrics(tmp_path)
    assert line["loss"] == pytest.approx(0.0, abs=0.5)
    assert line["grad_norm"] > 0
    assert line["mismatch"] < 1e-4
    assert line["ratio"] == pytest.approx(1.0, abs=1e-5)
    assert line["tokens"] < line["tokens/unshared"]


@pytest.mark.usefixtures("graded")
def test_a_server_reads_the_new_weights_before_it_samples(stall: Project, tmp_path: Path, server: FakeServer) -> None:
    rollout = RolloutConfig(backend="sglang", urls=[server.url])
    STAGE.run(stall.job(tmp_path, rl_config(**SHORT, rollout=rollout, loop={"steps": 2, "lr": 0.05})))
    lines = read_metrics(tmp_path)
    assert server.read == ["weights-0", "weights-1"]
    assert server.asked > 4
    # The second batch was sampled by the weights after the first update.
    assert all(line["mismatch"] < 1e-4 for line in lines)
    assert not list((tmp_path / "served").iterdir())


@pytest.mark.usefixtures("graded")
def test_a_draft_head_goes_across_and_is_marked_as_stale(stall: Project, tmp_path: Path) -> None:
    model = load_policy(PolicyConfig(name="tiny", dtype="float32", device="cpu"), stall.model).inner
    head = full_names(fresh_head(model, init="random", seed=3).state_dict())
    drafting = tmp_path / "drafting"
    export_head(stall.model, drafting, head, lineage=next_lineage(stall.model, stage="mtp-adapt", recipe={}))
    job = stall.job(tmp_path / "run", rl_config(**SHORT, loop={"steps": 1, "lr": 0.01}), start=drafting)
    STAGE.run(job)
    before, after = read_lineage(drafting), read_lineage(job.checkpoint)
    assert before is not None and after is not None and before.weights != after.weights
    assert (before.head.state, after.head.state) == ("trained", "stale")
    assert before.head.weights == after.head.weights
    assert all(tensor.equal(head[name]) for name, tensor in head_tensors(job.checkpoint).items())


def test_a_server_that_takes_no_weights_stops_the_run(stall: Project, tmp_path: Path, server: FakeServer) -> None:
    server.refuses = True
    rollout = RolloutConfig(backend="sglang", urls=[server.url])
    with pytest.raises(TrainingError, match="did not take the new weights"):
        STAGE.run(stall.job(tmp_path, rl_config(**SHORT, rollout=rollout)))


def test_a_model_that_never_answers_stops_the_run(stall: Project, tmp_path: Path) -> None:
    short = stall.with_context(64)
    with pytest.raises(TrainingError, match=r"answered in none of 2 rollouts.*the context of tiny holds 64"):
        STAGE.run(short.job(tmp_path, rl_config(**SHORT)))


def test_sharded_weights_are_sampled_by_servers_only(stall: Project, tmp_path: Path) -> None:
    job = stall.job(tmp_path, rl_config(sharding="fsdp2"))
    with pytest.raises(UsageError, match="those are sharded"):
        stage.backend_of(job, job.config, Accelerator(cpu=True))
    with pytest.raises(UsageError, match=r"kl=0\.1"):
        stage.reference_of(job, rl_config(sharding="fsdp2", kl=0.1))
    with pytest.raises(UsageError, match=r"needs rollout\.urls"):
        rl_config(rollout=RolloutConfig(backend="sglang")).check()


@pytest.mark.usefixtures("graded")
def test_a_tiny_model_of_the_papers_architecture(stall: Project, tmp_path: Path) -> None:
    """Layers of linear attention and of experts: padded, and decoded one answer after the other."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    config = Qwen3_5MoeTextConfig(
        vocab_size=tokenizer.get_vocab_size() + 5,
        hidden_size=32,
        num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"],
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
        max_position_embeddings=8192,
        initializer_range=0.2,
        eos_token_id=0,
    )
    folder = tmp_path / "model"
    Qwen3_5MoeForCausalLM(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    job = stall.job(tmp_path / "run", rl_config(**SHORT, loop={"steps": 1}), start=folder)
    STAGE.run(job)
    assert any("linear_attention" in line for line in stall.said)
    (line,) = read_metrics(tmp_path / "run")
    assert line["mismatch"] < 1e-3
    assert line["tokens"] >= line["tokens/unshared"]
