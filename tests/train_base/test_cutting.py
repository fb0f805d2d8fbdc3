"""A cut model has the chosen tensors of the whole one, byte for byte, and computes what those compute."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from harnessctl.checkpoint.policy import check_checkpoint, read_lineage, weights_digest
from harnessctl.errors import CheckpointError
from harnessctl.records.lineage import Lineage
from harnessctl.train.base.cutting import Cut, cut_model
from harnessctl.train.base.encoding import encoded
from harnessctl.train.base.neurons import important_neurons
from harnessctl.train.base.vocabulary import Wanted
from harnessctl.train.config import PolicyConfig
from harnessctl.train.policy import load_policy
from tests.train_base.conftest import LAYERS, write_model

LINEAGE = Lineage(stage="base", base="b", parent="p")
TEXTS = ["lookup by meaning", "copy of names"]


def cut(source, target, **options):
    cut_model(source, target, Cut(**options), lineage=LINEAGE)
    return load_file(target / "model.safetensors"), json.loads((target / "config.json").read_text())


def test_layers_and_rows_are_the_sources(source, tmp_path, tokenizer):
    whole = load_file(source / "model.safetensors")
    tensors, config = cut(source, tmp_path / "cut", layers=[0, 2], vocabulary=Wanted(texts=TEXTS))
    assert config["num_hidden_layers"] == 2
    assert torch.equal(tensors["model.layers.1.mlp.up_proj.weight"], whole["model.layers.2.mlp.up_proj.weight"])
    assert not any(name.startswith("model.layers.2.") for name in tensors)
    reduced = Tokenizer.from_file(str(tmp_path / "cut" / "tokenizer.json"))
    assert config["vocab_size"] == reduced.get_vocab_size() == len(tensors["model.embed_tokens.weight"])
    for token, row in reduced.get_vocab().items():
        old = tokenizer.token_to_id(token)
        assert torch.equal(tensors["model.embed_tokens.weight"][row], whole["model.embed_tokens.weight"][old])
    for key, token in (
        ("bos_token_id", "<|im_start|>"),
        ("eos_token_id", "<|im_end|>"),
        ("pad_token_id", "<|im_end|>"),
    ):
        assert config[key] == reduced.token_to_id(token)
        assert json.loads((tmp_path / "cut" / "generation_config.json").read_text())[key] == config[key]


def test_an_untied_head_and_ids_in_lists_are_cut_too(tokenizer, tmp_path):
    whole = write_model(tmp_path / "whole", tokenizer, tie_word_embeddings=False, eos_token_id=[2, 0])
    tensors, config = cut(whole, tmp_path / "cut", vocabulary=Wanted(texts=TEXTS))
    assert len(tensors["lm_head.weight"]) == config["vocab_size"] < tokenizer.get_vocab_size()
    assert config["eos_token_id"] == [2, 0] and config["num_hidden_layers"] == LAYERS


def test_nothing_cut_computes_the_same(source, tmp_path):
    cut(source, tmp_path / "cut")
    ids = torch.arange(20)[None]
    first, second = (AutoModelForCausalLM.from_pretrained(path)(ids).logits for path in (source, tmp_path / "cut"))
    assert torch.equal(first, second)


def test_a_smaller_vocabulary_has_the_wholes_logits_at_its_rows(source, tmp_path, tokenizer):
    cut(source, tmp_path / "cut", vocabulary=Wanted(texts=TEXTS))
    reduced = Tokenizer.from_file(str(tmp_path / "cut" / "tokenizer.json"))
    ids = reduced.encode(TEXTS[0], add_special_tokens=False).ids
    rows = [tokenizer.token_to_id(reduced.id_to_token(number)) for number in range(reduced.get_vocab_size())]
    with torch.no_grad():
        mine = AutoModelForCausalLM.from_pretrained(tmp_path / "cut")(torch.tensor([ids])).logits
        theirs = AutoModelForCausalLM.from_pretrained(source)(torch.tensor([[rows[i] for i in ids]])).logits
    torch.testing.assert_close(mine, theirs[..., rows])


def test_neurons_that_say_nothing_are_left_out(tokenizer, tmp_path, encoder):
    """Half of each layer's neurons are made silent; leaving just these out changes nothing."""
    from harnessctl.data.general import draw

    whole = write_model(tmp_path / "whole", tokenizer)
    model = AutoModelForCausalLM.from_pretrained(whole)
    for layer in model.model.layers:
        layer.mlp.down_proj.weight.data[:, ::2] = 0.0
    model.save_pretrained(whole)
    policy = load_policy(PolicyConfig(name="tiny", device="cpu", dtype="float32"), whole)
    shown = [encoded(draw(0, number), encoder).tokens for number in range(3)]
    neurons = important_neurons(policy, shown, layers=range(LAYERS), count=24)
    assert all(kept.tolist() == list(range(1, 48, 2)) for kept in neurons.values())
    _, config = cut(whole, tmp_path / "cut", neurons=neurons)
    assert config["intermediate_size"] == 24
    ids = torch.arange(20)[None]
    with torch.no_grad():
        narrow = AutoModelForCausalLM.from_pretrained(tmp_path / "cut")(ids).logits
        torch.testing.assert_close(narrow, policy.model(ids).logits)
    with pytest.raises(CheckpointError, match="48 neurons"):
        important_neurons(policy, shown, layers=[0], count=49)


def test_the_folder_is_a_checkpoint_with_a_lineage(source, tmp_path):
    cut(source, tmp_path / "cut", layers=[1])
    lineage = read_lineage(tmp_path / "cut")
    assert lineage is not None and lineage.weights == weights_digest(tmp_path / "cut") and lineage.parent == "p"
    check_checkpoint(tmp_path / "cut", content=True)


@pytest.mark.parametrize("layers", [[], [0, 0], [2, 1], [-1], [LAYERS]])
def test_layers_that_are_not_there_are_refused(source, tmp_path, layers):
    with pytest.raises(CheckpointError, match="layers to keep"):
        cut(source, tmp_path / "cut", layers=layers)
    assert not (tmp_path / "cut").exists()
