"""Model folders that can be read in part: what is missing is never made up, and what is no number never trained on."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from harnessctl.decode.weights import load_weights
from harnessctl.errors import CheckpointError, TrainingError, UsageError
from harnessctl.train.config import LoraConfig, PolicyConfig
from harnessctl.train.policy import load_policy

WEIGHT = "model.layers.0.mlp.down_proj.weight"
Tensors = dict[str, torch.Tensor]


def without(tensors: Tensors) -> None:
    del tensors[WEIGHT]


def misshapen(tensors: Tensors) -> None:
    tensors[WEIGHT] = tensors[WEIGHT][:, :-1].contiguous()


def not_a_number(tensors: Tensors) -> None:
    tensors[WEIGHT][0, 0] = torch.nan


def infinite(tensors: Tensors) -> None:
    tensors[WEIGHT][0, 0] = -torch.inf


@pytest.fixture
def folder(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "model"))


def refused(folder: Path, what: str) -> bool:
    """Whether both ways to read a model refuse it, and say what is wrong."""
    with pytest.raises(CheckpointError) as trained:
        load_policy(PolicyConfig(name="tiny", device="cpu"), folder)
    with pytest.raises(UsageError) as decoded:
        load_weights(folder, device="cpu")
    return all(re.search(what, str(error.value)) for error in (trained, decoded))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (without, rf"the weight {WEIGHT} is missing$"),
        (misshapen, rf"the weight {WEIGHT} has the shape .*; config\.json wants"),
        (not_a_number, rf"the weight {WEIGHT} holds NaN"),
        (infinite, rf"the weight {WEIGHT} holds NaN or infinity"),
    ],
)
def test_weights_that_are_not_the_models(
    folder: Path, damage: Callable[[Tensors], None], what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    tensors = load_file(folder / "model.safetensors")
    damage(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert refused(folder, what)
    assert not capfd.readouterr().err


def test_a_tokenizer_with_more_tokens_than_the_model_has_rows(folder: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text())
    document["model"]["vocab"]["zz"] = 9000
    (folder / "tokenizer.json").write_text(json.dumps(document))
    assert refused(folder, "gives 'zz' the id 9000; the model has 2.. rows")


def test_an_index_that_names_a_file_which_is_not_there(folder: Path) -> None:
    names = list(load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    files = dict.fromkeys(names, "model-00001-of-00002.safetensors") | {names[0]: "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    assert refused(folder, "model-00002-of-00002")


@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_an_adapter_on_tied_embeddings_is_refused(tied: Path, target: str) -> None:
    with pytest.raises(TrainingError, match=rf"{target} shares its weight"):
        load_policy(PolicyConfig(name="tied", device="cpu", lora=LoraConfig(targets=[target])), tied)
    load_policy(PolicyConfig(name="tied", device="cpu", lora=LoraConfig()), tied)
