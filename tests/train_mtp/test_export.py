"""The checkpoint of a tiny model of Qwen3.6's architecture, as an engine would read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import torch
from safetensors import safe_open
from transformers import Qwen3_5MoeForCausalLM

from harnessctl.checkpoint.export import head_tensors
from harnessctl.checkpoint.head import check_head
from harnessctl.errors import CheckpointError
from harnessctl.train.mtp.source import stored_head
from tests.decode.conftest import make_tokenizer
from tests.train_mtp.conftest import make_qwen
from tests.train_mtp.test_stage import trained

# The names of the facts, written out: what SGLang looks for, and says nothing about when it is not there.
SHARED = {
    "mtp.fc.weight": [32, 64],
    "mtp.pre_fc_norm_embedding.weight": [32],
    "mtp.pre_fc_norm_hidden.weight": [32],
    "mtp.norm.weight": [32],
    "mtp.layers.0.input_layernorm.weight": [32],
    "mtp.layers.0.post_attention_layernorm.weight": [32],
    "mtp.layers.0.self_attn.q_proj.weight": [128, 32],
    "mtp.layers.0.self_attn.k_proj.weight": [32, 32],
    "mtp.layers.0.self_attn.v_proj.weight": [32, 32],
    "mtp.layers.0.self_attn.o_proj.weight": [32, 64],
    "mtp.layers.0.self_attn.q_norm.weight": [16],
    "mtp.layers.0.self_attn.k_norm.weight": [16],
    "mtp.layers.0.mlp.gate.weight": [4, 32],
    "mtp.layers.0.mlp.shared_expert.gate_proj.weight": [20, 32],
    "mtp.layers.0.mlp.shared_expert.up_proj.weight": [20, 32],
    "mtp.layers.0.mlp.shared_expert.down_proj.weight": [32, 20],
    "mtp.layers.0.mlp.shared_expert_gate.weight": [1, 32],
}
FUSED = {"mtp.layers.0.mlp.experts.gate_up_proj": [4, 48, 32], "mtp.layers.0.mlp.experts.down_proj": [4, 32, 24]}
PER_EXPERT = {
    f"mtp.layers.0.mlp.experts.{expert}.{part}_proj.weight": shape
    for expert in (0, 1, 2, 3)
    for part, shape in (("gate", [24, 32]), ("up", [24, 32]), ("down", [32, 24]))
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In several files with an index, in bfloat16, as models of this size come."""
    folder = tmp_path_factory.mktemp("qwen") / "policy"
    model = make_qwen(vocab_size=make_tokenizer().get_vocab_size()).to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="60KB")
    assert (folder / "model.safetensors.index.json").is_file()
    make_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def stored(folder: Path) -> dict[str, list[int]]:
    """Names and shapes of the head, by way of the index alone."""
    index = orjson.loads((folder / "model.safetensors.index.json").read_bytes())["weight_map"]
    found: dict[str, list[int]] = {}
    for name, file in index.items():
        if name.startswith("mtp."):
            with safe_open(folder / file, framework="pt") as held:
                found[name] = held.get_slice(name).get_shape()
    return found


# transformers writes the policy's own experts apart, and `auto` does as the policy has it.
@pytest.mark.parametrize(("form", "experts"), [("auto", PER_EXPERT), ("fused", FUSED), ("per-expert", PER_EXPERT)])
def test_every_name_and_shape(tmp_path: Path, checkpoint: Path, form: str, experts: dict[str, list[int]]) -> None:
    lineage = trained(tmp_path, checkpoint, 1, form=form, loop={"steps": 2, "lr": 1e-3})
    made = tmp_path / "checkpoint"
    assert stored(made) == {**SHARED, **experts}
    assert lineage.head.state == "trained"
    for path in checkpoint.iterdir():
        if path.name != "model.safetensors.index.json":
            assert (made / path.name).read_bytes() == path.read_bytes(), path.name
    before, after = (
        orjson.loads((folder / "model.safetensors.index.json").read_bytes()) for folder in (checkpoint, made)
    )
    assert {k: v for k, v in after["weight_map"].items() if not k.startswith("mtp.")} == before["weight_map"]
    assert after["metadata"]["total_size"] > before["metadata"]["total_size"]
    assert head_tensors(made)["mtp.fc.weight"].dtype == torch.bfloat16


def test_a_native_head_is_trained_on_and_keeps_its_form(tmp_path: Path, checkpoint: Path) -> None:
    """What was exported is read back as it was trained, and a second training begins from it."""
    short: dict[str, Any] = {"loop": {"steps": 2, "lr": 1e-2}}
    trained(tmp_path / "one", checkpoint, 1, form="per-expert", **short)
    made = tmp_path / "one" / "checkpoint"
    model = Qwen3_5MoeForCausalLM.from_pretrained(made, dtype=torch.float32)
    head = stored_head(model, made).state_dict()
    fused = head_tensors(made)
    assert all(torch.equal(head[name.removeprefix("mtp.")], value.float()) for name, value in fused.items())
    lineage = trained(tmp_path / "two", made, 1, source="native", **short)
    again = tmp_path / "two" / "checkpoint"
    assert stored(again) == {**SHARED, **PER_EXPERT}
    assert lineage.head.source == "native" and lineage.weights == lineage.parent
    assert not torch.equal(head_tensors(again)["mtp.fc.weight"], fused["mtp.fc.weight"])


def test_a_config_that_claims_a_head_which_is_not_there(tmp_path: Path, checkpoint: Path) -> None:
    """transformers drops mtp.* on save, and leaves the config as it was."""
    with pytest.raises(CheckpointError, match="claims 1 layer of a draft head"):
        check_head(checkpoint)
    with pytest.raises(CheckpointError, match="claims 1 layer of a draft head"):
        trained(tmp_path, checkpoint, 1, source="auto", loop={"steps": 1, "lr": 1e-3})
    assert not (tmp_path / "checkpoint").exists()


def test_a_head_of_another_architecture_is_not_grafted(tmp_path: Path, checkpoint: Path, toy: Path) -> None:
    trained(tmp_path / "one", toy, 1, loop={"steps": 1, "lr": 1e-3})
    head = str(tmp_path / "one" / "checkpoint")
    with pytest.raises(
        CheckpointError, match=r"does not fit the policy: mtp\.layers\.0\.mlp\.experts\.down_proj is missing"
    ):
        trained(tmp_path / "two", checkpoint, 1, source="grafted", graft=head, loop={"steps": 1, "lr": 1e-3})
