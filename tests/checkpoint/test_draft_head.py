"""Draft heads: the set of names and shapes, what is said of an incomplete one, and the export into a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from harnessctl.checkpoint.experts import in_form
from harnessctl.checkpoint.export import expected_head, export_head, head_tensors
from harnessctl.checkpoint.head import check_head, claimed_layers, head_shapes
from harnessctl.checkpoint.layout import head_digest, read_layout, weights_digest
from harnessctl.checkpoint.policy import check_checkpoint, read_lineage
from harnessctl.checkpoint.shards import read_shard
from harnessctl.errors import CheckpointError
from harnessctl.records.lineage import Head
from tests.checkpoint.conftest import (
    CONFIG,
    DENSE,
    TEXT,
    Tensors,
    drawn,
    file_digests,
    head_of,
    policy_tensors,
    some_lineage,
    write_checkpoint,
)

INDEX = "model.safetensors.index.json"
NAMES = [
    "mtp.fc.weight",
    "mtp.pre_fc_norm_embedding.weight",
    "mtp.pre_fc_norm_hidden.weight",
    "mtp.norm.weight",
    "mtp.layers.0.input_layernorm.weight",
    "mtp.layers.0.post_attention_layernorm.weight",
    "mtp.layers.0.self_attn.q_proj.weight",
    "mtp.layers.0.self_attn.k_proj.weight",
    "mtp.layers.0.self_attn.v_proj.weight",
    "mtp.layers.0.self_attn.o_proj.weight",
    "mtp.layers.0.self_attn.q_norm.weight",
    "mtp.layers.0.self_attn.k_norm.weight",
    "mtp.layers.0.mlp.gate.weight",
    "mtp.layers.0.mlp.shared_expert.gate_proj.weight",
    "mtp.layers.0.mlp.shared_expert.up_proj.weight",
    "mtp.layers.0.mlp.shared_expert.down_proj.weight",
    "mtp.layers.0.mlp.shared_expert_gate.weight",
]
FUSED = ["mtp.layers.0.mlp.experts.gate_up_proj", "mtp.layers.0.mlp.experts.down_proj"]
APART = [
    f"mtp.layers.0.mlp.experts.{expert}.{part}_proj.weight" for expert in range(3) for part in ("gate", "up", "down")
]


def test_the_names_of_a_mixture_of_experts():
    assert sorted(head_shapes(CONFIG)) == sorted(NAMES + FUSED)
    assert sorted(head_shapes(CONFIG, form="per-expert")) == sorted(NAMES + APART)
    assert head_shapes(TEXT) == head_shapes(CONFIG), "nested or not"
    two = head_shapes(CONFIG, layers=2)
    assert len(two) == 4 + 2 * (len(NAMES + FUSED) - 4)
    assert two["mtp.layers.1.self_attn.q_proj.weight"] == (64, 32)


def test_the_shapes_of_qwen3_6_35b_a3b():
    """Sizes as its config.json has them."""
    text = {**TEXT, "hidden_size": 2048, "num_attention_heads": 16, "head_dim": 256, "num_experts": 256}
    text |= {"moe_intermediate_size": 512, "shared_expert_intermediate_size": 512}
    shapes = head_shapes({**CONFIG, "text_config": text})
    assert shapes["mtp.fc.weight"] == (2048, 4096)
    assert shapes["mtp.layers.0.self_attn.q_proj.weight"] == (8192, 2048)
    assert shapes["mtp.layers.0.self_attn.k_proj.weight"] == (512, 2048)
    assert shapes["mtp.layers.0.self_attn.o_proj.weight"] == (2048, 4096)
    assert shapes["mtp.layers.0.self_attn.q_norm.weight"] == (256,)
    assert shapes["mtp.layers.0.mlp.experts.gate_up_proj"] == (256, 1024, 2048)
    assert shapes["mtp.layers.0.mlp.experts.down_proj"] == (256, 2048, 512)
    assert shapes["mtp.layers.0.mlp.shared_expert_gate.weight"] == (1, 2048)
    assert len(head_shapes({**CONFIG, "text_config": text}, form="per-expert")) == 17 + 3 * 256


def test_the_names_of_a_dense_model():
    shapes = head_shapes(DENSE)
    assert len(shapes) == 15
    assert shapes["mtp.layers.0.mlp.down_proj.weight"] == (32, 48)


@pytest.mark.parametrize("kind", ["qwen3_5_moe", "qwen3_5", "qwen3_next"])
def test_the_layer_is_that_of_the_library(kind: str):
    """The head's layer beside a full-attention layer that transformers builds from the same config."""
    import importlib

    module = importlib.import_module(f"transformers.models.{kind}")
    stem = {"qwen3_5_moe": "Qwen3_5Moe", "qwen3_5": "Qwen3_5", "qwen3_next": "Qwen3Next"}[kind]
    suffix = "" if kind == "qwen3_next" else "Text"
    given = {key: value for key, value in {**DENSE, **TEXT}.items() if key != "model_type"}
    config = getattr(module, f"{stem}{suffix}Config")(**given, attention_bias=True)
    modeling = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    with torch.device("meta"):
        layer = getattr(modeling, f"{stem}DecoderLayer")(config, 1)
    wanted = {f"mtp.layers.0.{name}": tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    found = head_shapes(json.loads(json.dumps(config.to_dict())))
    assert {name: shape for name, shape in found.items() if ".layers." in name} == wanted


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "llama"}, "models of type 'llama'"),
        ({**DENSE, "head_dim": None}, "`head_dim` is None"),
        ({**DENSE, "mtp_use_dedicated_embeddings": True}, "embeddings of its own"),
    ],
)
def test_configs_without_a_head_that_is_known(config: dict[str, Any], says: str):
    with pytest.raises(CheckpointError, match=says):
        head_shapes(config)


def test_what_a_config_claims():
    assert claimed_layers(CONFIG) == 1
    assert claimed_layers({"model_type": "qwen3_next", "num_nextn_predict_layers": 2}) == 2
    assert claimed_layers({"text_config": {"mtp_num_hidden_layers": None}}) == 0


def test_forms_are_each_others_inverse():
    fused = head_of()
    apart = in_form(fused, "per-expert")
    assert sorted(apart) == sorted(NAMES + APART)
    again = in_form(apart, "fused")
    assert again.keys() == fused.keys()
    assert all(torch.equal(again[name], fused[name]) for name in fused)
    assert torch.equal(apart[APART[0]], fused[FUSED[0]][0, :16])
    assert torch.equal(apart[APART[1]], fused[FUSED[0]][0, 16:])
    del apart[APART[4]]
    with pytest.raises(CheckpointError, match=r"no up_proj of the experts \[1\]"):
        in_form(apart, "fused")
    apart[APART[4]] = torch.zeros(2, 2)
    with pytest.raises(CheckpointError, match="several shapes"):
        in_form(apart, "fused")


@pytest.mark.parametrize("form", ["fused", "per-expert"])
def test_a_whole_head_passes(tmp_path: Path, form: Any):
    folder = write_checkpoint(tmp_path / "c", policy_tensors() | head_of(form=form), shards=3)
    found = check_head(folder)
    assert found is not None
    assert (found.form, found.layers, found.shapes) == (form, 1, head_shapes(CONFIG, form=form))


def test_an_incomplete_head_is_told_name_by_name(tmp_path: Path):
    head = head_of(form="per-expert")
    for name in ("mtp.norm.weight", APART[0], APART[3], APART[6], APART[7]):
        del head[name]
    head["mtp.fc.weight"] = torch.zeros(64, 32)
    head["mtp.layers.0.self_attn.sinks"] = torch.zeros(4)
    head |= drawn({f"mtp.layers.1.mlp.experts.{n}.up_proj.weight": (1,) for n in (0, 2)})
    folder = write_checkpoint(tmp_path / "c", policy_tensors() | head, shards=2)
    with pytest.raises(CheckpointError) as caught:
        check_head(folder)
    message = caught.value.message
    assert "config.json claims 1 layer of a draft head, and 5 of 26 tensors are missing: mtp.norm.weight, " in message
    assert "mtp.layers.0.mlp.experts.{0..2}.gate_proj.weight" in message
    assert "mtp.layers.0.mlp.experts.2.up_proj.weight" in message
    assert "3 tensors belong to no such head: " in message
    assert "mtp.layers.1.mlp.experts.{0,2}.up_proj.weight, mtp.layers.0.self_attn.sinks" in message.replace(
        "mtp.layers.0.self_attn.sinks, mtp.layers.1.mlp.experts.{0,2}.up_proj.weight",
        "mtp.layers.1.mlp.experts.{0,2}.up_proj.weight, mtp.layers.0.self_attn.sinks",
    )
    assert "mtp.fc.weight has the shape [64, 32]; by the config it is [32, 64]" in message


def test_models_that_claim_none_and_models_of_other_families(tmp_path: Path):
    text = {**TEXT, "mtp_num_hidden_layers": 0}
    assert check_head(write_checkpoint(tmp_path / "a", policy_tensors(), config={"text_config": text})) is None
    other = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
    assert check_head(write_checkpoint(tmp_path / "b", policy_tensors(), config=other)) is None


def test_scales_of_a_quantised_head_are_its_own(tmp_path: Path):
    head = head_of() | {"mtp.layers.0.self_attn.q_proj.weight_scale_inv": torch.ones(1)}
    check_head(
        write_checkpoint(tmp_path / "a", policy_tensors() | head, config={**CONFIG, "quantization_config": {"a": 1}})
    )
    with pytest.raises(CheckpointError, match=r"belong to no such head: .*weight_scale_inv"):
        check_head(write_checkpoint(tmp_path / "b", policy_tensors() | head))


Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(tensors: Tensors, **options: Any) -> Path:
        return write_checkpoint(tmp_path / "source", tensors, **options)

    return made


def policy_bytes(folder: Path) -> dict[str, bytes]:
    """The bytes of every policy tensor, by name."""
    layout = read_layout(folder)
    return {
        name: (folder / layout.files[name]).read_bytes()[stored.start : stored.end]
        for name, stored in layout.tensors.items()
        if name not in layout.head_names
    }


def export(source: Path, head: Tensors, **options: Any) -> tuple[Path, set[str]]:
    """The export, and the names of the files in which it differs from the source."""
    target = source.parent / "target"
    before = file_digests(source)
    export_head(source, target, head, lineage=some_lineage(stage="mtp-adapt"), **options)
    assert file_digests(source) == before
    assert policy_bytes(target) == policy_bytes(source)
    assert weights_digest(target) == weights_digest(source)
    after = file_digests(target)
    named = read_layout(target)
    assert {path.name for path in target.glob("*.safetensors")} == set(named.files.values())
    check_checkpoint(target, content=True)
    differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert "lineage.json" in differing
    return target, differing - {"lineage.json"}


def trained(form: Any = "fused") -> Tensors:
    return {name: tensor.float() for name, tensor in head_of(form=form, seed=7).items()}


def assert_head(target: Path, dtype: torch.dtype = torch.bfloat16) -> None:
    found = head_tensors(target)
    assert found.keys() == head_shapes(CONFIG).keys()
    for name, tensor in trained().items():
        assert found[name].dtype == dtype
        assert torch.equal(found[name], tensor.to(dtype))


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("form", ["fused", "per-expert"])
def test_a_native_head_is_replaced_in_place(make: Make, shards: int, form: Any):
    source = make(policy_tensors() | head_of(form=form), shards=shards)
    holding = {file for name, file in read_layout(source).files.items() if name.startswith("mtp.")}
    target, differing = export(source, trained())
    assert differing == holding, "the index too is as it was"
    for file in holding:
        assert read_shard(source / file).head == read_shard(target / file).head
    assert_head(target)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("form", ["fused", "per-expert"])
def test_a_head_is_added_where_there_was_none(make: Make, shards: int, form: Any):
    source = make(policy_tensors(), shards=shards)
    target, differing = export(source, trained(), form=form)
    assert differing == {"model-mtp.safetensors", INDEX}
    assert_head(target)
    index = json.loads((target / INDEX).read_text())
    found = check_head(target)
    assert found is not None
    assert found.form == form
    assert {name for name, file in index["weight_map"].items() if file == "model-mtp.safetensors"} == set(found.shapes)
    tensors = read_layout(target).tensors
    assert index["metadata"]["total_size"] == sum(stored.end - stored.start for stored in tensors.values())
    assert index["weight_map"].keys() == tensors.keys()
    with safe_open(target / "model-mtp.safetensors", framework="pt") as opened:
        assert opened.metadata() == {"format": "pt"}


def test_what_an_index_says_beside_is_kept(make: Make):
    source = make(policy_tensors(), shards=2)
    index = json.loads((source / INDEX).read_text())
    index["metadata"] |= {"total_parameters": 1, "made_by": "someone"}
    (source / INDEX).write_text(json.dumps(index | {"more": [1]}))
    target, _ = export(source, trained())
    written = json.loads((target / INDEX).read_text())
    assert written["more"] == [1]
    assert written["metadata"]["made_by"] == "someone"
    counted = sum(tensor.numel() for tensor in (policy_tensors() | head_of()).values())
    assert written["metadata"]["total_parameters"] == counted
    assert list(written["weight_map"])[: len(index["weight_map"])] == list(index["weight_map"])


@pytest.mark.parametrize("shards", [1, 3])
def test_another_form_takes_the_old_tensors_out(make: Make, shards: int):
    source = make(policy_tensors() | head_of(), shards=shards)
    target, _ = export(source, trained(), form="per-expert")
    found = check_head(target)
    assert found is not None
    assert found.form == "per-expert"
    assert_head(target)


def test_a_head_that_had_its_own_file_leaves_none_behind(make: Make):
    source = make(policy_tensors())
    broken = head_of()
    del broken["mtp.norm.weight"]
    save_file(broken, source / "mtp.safetensors")
    files = dict.fromkeys(policy_tensors(), "model.safetensors") | dict.fromkeys(broken, "mtp.safetensors")
    (source / INDEX).write_text(json.dumps({"weight_map": files}))
    (source / "stray.safetensors").write_bytes(b"old")
    target, differing = export(source, trained())
    assert differing == {"mtp.safetensors", "model-mtp.safetensors", INDEX, "stray.safetensors"}
    assert sorted(path.name for path in target.glob("*.safetensors")) == ["model-mtp.safetensors", "model.safetensors"]
    assert_head(target)


def test_the_lineage_of_an_export(make: Make):
    source = make(policy_tensors())
    known = Head(source="grafted", depths=3, acceptance={"after": [0.9]})
    target, _ = export(source, trained(), known=known)
    lineage = read_lineage(target)
    assert lineage is not None
    assert lineage.weights == weights_digest(source)
    assert lineage.head == Head(
        state="trained", source="grafted", depths=3, acceptance={"after": [0.9]}, weights=head_digest(target)
    )


def test_a_head_that_does_not_fit_is_refused_before_anything_is_written(make: Make):
    source = make(policy_tensors())
    head = trained()
    del head["mtp.norm.weight"]
    head["mtp.fc.weight"] = torch.zeros(32, 32)
    head["mtp.more"] = torch.zeros(1)
    with pytest.raises(CheckpointError) as caught:
        export_head(source, source.parent / "target", head, lineage=some_lineage())
    for says in ("1 of 19 tensors are missing: mtp.norm.weight", "mtp.more", "[32, 32]; by the config it is [32, 64]"):
        assert says in caught.value.message
    assert [path.name for path in source.parent.iterdir()] == ["source"]


def test_a_head_of_numbers_that_are_none(make: Make):
    source = make(policy_tensors())
    with pytest.raises(CheckpointError, match=r"mtp\.norm\.weight: holds values that are not numbers"):
        export_head(
            source, source.parent / "target", trained() | {"mtp.norm.weight": torch.full((32,), float("nan"))},
            lineage=some_lineage(),
        )  # fmt: skip
    assert [path.name for path in source.parent.iterdir()] == ["source"]


def llama(seed: int = 3) -> Tensors:
    layer = {"self_attn.q_proj.weight": (32, 32), "mlp.up_proj.weight": (48, 32)}
    layer |= {"input_layernorm.weight": (32,), "post_attention_layernorm.weight": (32,)}
    shapes = {f"model.layers.{n}.{name}": shape for n in range(2) for name, shape in layer.items()}
    shapes |= {"model.embed_tokens.weight": (40, 32), "model.norm.weight": (32,)}
    return drawn(shapes, seed=seed, dtype=torch.float32)


def test_a_dense_model_of_another_family_lends_its_own_layer(make: Make):
    source = make(
        llama() | drawn({"vision_tower.layers.9.self_attn.q_proj.weight": (9, 9)}), config={"model_type": "llama"}
    )
    shapes = expected_head(source)
    assert shapes == {
        "mtp.fc.weight": (32, 64),
        "mtp.pre_fc_norm_embedding.weight": (32,),
        "mtp.pre_fc_norm_hidden.weight": (32,),
        "mtp.norm.weight": (32,),
        "mtp.layers.0.self_attn.q_proj.weight": (32, 32),
        "mtp.layers.0.mlp.up_proj.weight": (48, 32),
        "mtp.layers.0.input_layernorm.weight": (32,),
        "mtp.layers.0.post_attention_layernorm.weight": (32,),
    }
    head = drawn(shapes, dtype=torch.float32)
    target, differing = export(source, head)
    assert differing == {"model-mtp.safetensors", INDEX}
    assert all(torch.equal(tensor, head[name]) for name, tensor in head_tensors(target).items())
    with pytest.raises(CheckpointError, match=r"1 of 8 tensors are missing: mtp\.norm\.weight"):
        export_head(
            source, source.parent / "no", {name: head[name] for name in head if "mtp.norm" not in name},
            lineage=some_lineage(),
        )  # fmt: skip


def test_a_quantised_policy_takes_no_new_head(make: Make):
    tensors = policy_tensors()
    source = make({name: tensor.to(torch.float8_e4m3fn) for name, tensor in tensors.items()})
    with pytest.raises(CheckpointError, match="stored as F8_E4M3, quantised"):
        export_head(source, source.parent / "target", trained(), lineage=some_lineage())


def test_an_export_reads_back_through_the_library(make: Make):
    """A model whose one file is joined by a head's and an index still loads, and says nothing of the head."""
    import transformers

    from harnessctl.checkpoint.policy import save_checkpoint

    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4
    )
    model = transformers.LlamaForCausalLM(config)
    source = make({"x": torch.ones(1)}, config={})
    model.save_pretrained(source)
    head = drawn(expected_head(source), dtype=torch.float32)
    target, _ = export(source, head)
    again = transformers.AutoModelForCausalLM.from_pretrained(target)
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True))
    third = source.parent / "third"
    save_checkpoint(third, source=target, changed={"model.norm.weight": torch.full((32,), 2.0)}, lineage=some_lineage())
    assert head_digest(third) == head_digest(target)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(third)
    assert torch.equal(loaded.model.norm.weight, torch.full((32,), 2.0))
