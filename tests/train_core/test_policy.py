"""The policy: live weights to generate with, adapters merged on the way out, names as the checkpoint has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen3_5MoeConfig, Qwen3_5MoeForConditionalGeneration

from harnessctl.checkpoint.policy import next_lineage, read_lineage, weights_digest
from harnessctl.errors import CheckpointError, TrainingError, UsageError
from harnessctl.train.config import LoraConfig, PolicyConfig
from harnessctl.train.numbers import compute_dtype, has_bfloat16
from harnessctl.train.policy import Policy, load_policy
from tests.train_core.conftest import write_model

IDS = torch.tensor([[5, 9, 30, 31, 40, 41]])


def opened(folder: Path, **given: object) -> Policy:
    return load_policy(PolicyConfig(name="tiny", device="cpu", dtype="float32", **given), folder)


def stored(folder: Path) -> dict[str, torch.Tensor]:
    return {name: value for path in sorted(folder.glob("*.safetensors")) for name, value in load_file(path).items()}


def logits(policy: Policy) -> torch.Tensor:
    with torch.no_grad():
        return policy.model(input_ids=IDS, use_cache=False).logits


def moved(policy: Policy) -> Policy:
    """The policy after something like a step."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            if parameter.requires_grad:
                parameter += 0.05 * torch.randn_like(parameter)
    return policy


def test_what_is_generated_with_is_what_is_trained(tiny: Path):
    policy = opened(tiny)
    weights = policy.weights()
    moved(policy)
    with torch.no_grad():
        assert torch.equal(weights.model(input_ids=IDS, use_cache=False).logits, logits(policy))
    assert weights.ends and not policy.has_adapter and not policy.model.training
    assert policy.codec.decode(policy.codec.encode_data("a tool")) == "a tool"


def test_saved_and_read_again_it_is_the_same(tiny: Path, tmp_path: Path):
    policy = moved(opened(tiny))
    lineage = next_lineage(tiny, stage="sft", recipe={}, template=policy.template.digest)
    policy.save(tmp_path / "saved", lineage)
    again = opened(tmp_path / "saved")
    assert torch.equal(logits(again), logits(policy))
    assert again.lineage == read_lineage(tmp_path / "saved") and again.lineage is not None
    assert again.lineage.weights == weights_digest(tmp_path / "saved") != again.lineage.parent


def test_tensors_have_the_names_of_the_source_and_are_not_the_live_ones(tiny: Path):
    policy = moved(opened(tiny))
    found = policy.tensors()
    assert found.keys() == stored(tiny).keys()
    name, parameter = next(iter(policy.model.named_parameters()))
    found[name].zero_()
    assert parameter.abs().sum() > 0


@pytest.mark.parametrize("both", [False, True])
def test_tied_embeddings_go_under_each_name_that_is_stored(tied: Path, both: bool):
    before = stored(tied)
    if both:
        save_file({**before, "lm_head.weight": before["model.embed_tokens.weight"].clone()}, tied / "model.safetensors")
    found = moved(opened(tied)).tensors()
    assert found.keys() == stored(tied).keys() and ("lm_head.weight" in found) is both
    if both:
        assert torch.equal(found["lm_head.weight"], found["model.embed_tokens.weight"])


def test_adapters_are_merged_on_the_way_out_and_the_live_model_stays(tiny: Path, tmp_path: Path):
    policy = opened(tiny, lora=LoraConfig(rank=4, alpha=8))
    plain = logits(opened(tiny))
    assert torch.equal(logits(policy), plain) and policy.has_adapter
    moved(policy)
    live = {name: value.clone() for name, value in policy.model.state_dict().items()}
    policy.save(tmp_path / "merged", next_lineage(tiny, stage="sft", recipe={}, adapter=True))
    assert all(torch.equal(value, live[name]) for name, value in policy.model.state_dict().items())
    merged = opened(tmp_path / "merged")
    assert not torch.allclose(logits(merged), plain, atol=1e-3)
    torch.testing.assert_close(logits(merged), logits(policy), rtol=0, atol=1e-5)
    with policy.adapter_off():
        assert torch.equal(logits(policy), plain)
    changed = {
        name for name, value in stored(tiny).items() if not torch.equal(value, stored(tmp_path / "merged")[name])
    }
    assert changed == {name for name in stored(tiny) if "_proj.weight" in name}
    assert all("lora_" in name for name, p in policy.model.named_parameters() if p.requires_grad)


def test_two_processes_begin_with_the_same_adapters(tiny: Path):
    torch.manual_seed(1)
    one = opened(tiny, lora=LoraConfig(rank=4))
    torch.manual_seed(2)
    other = opened(tiny, lora=LoraConfig(rank=4))
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))


def test_adapters_that_are_not_there(tiny: Path):
    with pytest.raises(TrainingError, match="no adapter to switch off"), opened(tiny).adapter_off():
        pass
    with pytest.raises(TrainingError, match=r"model\.lora"):
        opened(tiny, lora=LoraConfig(targets=["no_such_proj"]))


def large(folder: Path, *, fused: bool) -> Path:
    """A tiny model of the architecture of Qwen3.5/3.6, with vision and a draft head's tensor in its file."""
    text = {
        "vocab_size": 270,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "layer_types": ["linear_attention", "full_attention"],
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "moe_intermediate_size": 8,
        "shared_expert_intermediate_size": 8,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "eos_token_id": 0,
    }
    sight = {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 16}
    torch.manual_seed(0)
    config = Qwen3_5MoeConfig(text_config=text, vision_config={**sight, "num_position_embeddings": 16})
    model = Qwen3_5MoeForConditionalGeneration(config)
    write_model(folder, model, save_original_format=not fused)
    held = stored(folder) | {"mtp.layers.0.mlp.experts.down_proj": torch.ones(4, 16, 8)}
    save_file(held, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("fused", [False, True])
def test_names_that_transformers_changes_come_back(tmp_path: Path, fused: bool):
    source = large(tmp_path / "large", fused=fused)
    held = stored(source)
    assert ("model.language_model.layers.0.mlp.experts.gate_up_proj" in held) is fused
    policy = opened(source)
    found = policy.tensors()
    assert found.keys() == {name for name in held if "visual" not in name and not name.startswith("mtp.")}
    assert all(torch.equal(value, held[name]) for name, value in found.items())


def test_dtype_and_device():
    cpu = torch.device("cpu")
    assert compute_dtype("float32", cpu) is torch.float32 and compute_dtype("bfloat16", cpu) is torch.bfloat16
    assert compute_dtype("auto", cpu) is (torch.bfloat16 if has_bfloat16(cpu) else torch.float32)


def test_matrix_products_are_in_the_dtype_and_weights_stay(tiny: Path):
    policy = load_policy(PolicyConfig(name="tiny", device="cpu", dtype="bfloat16"), tiny)
    with torch.no_grad(), policy.autocast():
        assert policy.model(input_ids=IDS, use_cache=False).logits.dtype is torch.bfloat16
    assert next(policy.model.parameters()).dtype is torch.float32


def test_a_folder_that_is_no_model(tmp_path: Path, tiny: Path):
    with pytest.raises(UsageError, match="neither a name of the catalog"):
        opened(tmp_path / "none")
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((tiny / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(CheckpointError, match="cannot load the model in"):
        opened(tmp_path)
