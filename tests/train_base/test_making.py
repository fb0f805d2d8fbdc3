"""A made model has the tokens of the source, and goes on as a text did before, without any training."""

from __future__ import annotations

import json
import shutil

import msgspec
import pytest
import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from harnessctl.checkpoint.policy import check_checkpoint, read_lineage, weights_digest
from harnessctl.data.general import draw
from harnessctl.decode.weights import read_model
from harnessctl.errors import CheckpointError
from harnessctl.records.lineage import Lineage
from harnessctl.train.base.config import CorpusConfig, MakeConfig
from harnessctl.train.base.making import llama_config, make_model, tensors_of, token_meanings
from harnessctl.train.config import PolicyConfig
from harnessctl.train.policy import load_policy
from tests.train_base.conftest import SPECIAL, write_model

LINEAGE = Lineage(stage="base", base="b", parent="p")
SMALL = MakeConfig(
    layers=2, width=256, heads=4, head_dim=64, neurons=64, vocabulary=CorpusConfig(size=600, variants=0, items=1)
)
TEXTS = [message["content"] or "" for number in range(100) for message in draw(9, number).messages]
MODEL = PolicyConfig(name="made", device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def wide(tokenizer, tmp_path_factory):
    """A source whose embeddings have more directions than a small model keeps."""
    return write_model(tmp_path_factory.mktemp("wide") / "whole", tokenizer, hidden_size=320)


def made(source, target, shape=SMALL, seed=0):
    make_model(source, target, shape, texts=TEXTS, seed=seed, lineage=LINEAGE)
    return load_policy(MODEL, target)


def continued(shape, ids):
    """The share of tokens of the second half that are foretold; it repeats the first."""
    meanings = torch.randn(600, 320, generator=torch.Generator().manual_seed(0))
    model = LlamaForCausalLM(LlamaConfig(**llama_config(shape, 600, {})))
    model.load_state_dict(tensors_of(shape, meanings, seed=0), strict=False)
    with torch.no_grad():
        said = model.eval()(torch.cat([ids, ids], 1)).logits.argmax(-1)
    size = ids.shape[1]
    return (said[:, size:-1] == ids[:, 1:]).float().mean().item()


def test_it_goes_on_as_before_without_training():
    generator = torch.Generator().manual_seed(1)
    ids = torch.stack([torch.randperm(590, generator=generator)[:40] + 3 for _ in range(4)])
    assert continued(SMALL, ids) > 0.95
    assert continued(msgspec.structs.replace(SMALL, circuits=False), ids) < 0.2
    # Every third token is the same, and what stands before it says what follows.
    ids[:, 1::3] = 7
    assert continued(SMALL, ids) > 0.9


def test_the_folder_is_a_checkpoint_with_the_sources_special_tokens(wide, tmp_path, tokenizer):
    policy = made(wide, tmp_path / "made")
    check_checkpoint(tmp_path / "made", content=True)
    config = json.loads((tmp_path / "made" / "config.json").read_text())
    mine = Tokenizer.from_file(str(tmp_path / "made" / "tokenizer.json"))
    assert config["vocab_size"] == mine.get_vocab_size() == 600
    assert mine.id_to_token(config["eos_token_id"]) == tokenizer.id_to_token(2)
    lineage = read_lineage(tmp_path / "made")
    assert lineage is not None and lineage.weights == weights_digest(tmp_path / "made") and lineage.parent == "p"
    assert policy.inner.config.hidden_size == 256


def test_meanings_are_what_the_source_makes_of_a_word_behind_another(wide):
    whole, tokenizer = read_model(wide, torch.float32)
    ids = [tokenizer.encode(f" the {word}", add_special_tokens=False).ids for word in ("leak", "upside")]
    with torch.no_grad():
        layers = whole.model.layers
        whole.model.layers = layers[:1]  # a fifth of four
        wanted = [whole.model(torch.tensor([row])).last_hidden_state[0, -1] for row in ids]
        whole.model.layers = layers
    torch.testing.assert_close(token_meanings(whole, tokenizer, ["leak", " upside"]), torch.stack(wanted))


def test_nothing_speaks_of_the_sources_tokens(wide, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(wide, source)
    (source / "merges.txt").write_text("a b\n")
    (source / "chat_template.jinja").write_text("{{ messages }}")
    named = {"0": {"content": SPECIAL[0]}, "599": {"content": "gone"}}
    (source / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": named}))
    made(source, tmp_path / "made")
    assert not (tmp_path / "made" / "chat_template.jinja").exists() and not (tmp_path / "made" / "merges.txt").exists()
    config = json.loads((tmp_path / "made" / "tokenizer_config.json").read_text())
    assert config["added_tokens_decoder"] == {"0": {"content": SPECIAL[0]}}


def test_a_source_without_layers_is_refused(tokenizer):
    class Other:
        def get_decoder(self):
            return self

    with pytest.raises(CheckpointError, match="Other has no list of layers"):
        token_meanings(Other(), tokenizer, ["a"])


def test_it_is_a_function_of_the_seed(wide, tmp_path):
    first, same, other = (
        weights_digest(made(wide, tmp_path / f"made{number}", seed=seed).source)
        for number, seed in enumerate((0, 0, 1))
    )
    assert first == same != other


def test_alike_tokens_stay_alike():
    generator = torch.Generator().manual_seed(0)
    matters = torch.randn(40, 200, generator=generator).repeat_interleave(10, 0)
    meanings = matters + 0.3 * torch.randn(400, 200, generator=generator)
    found = tensors_of(SMALL, meanings, seed=0)["model.embed_tokens.weight"]
    alike = torch.nn.functional.cosine_similarity(found[:, None], found[None], dim=-1)
    same = torch.arange(400)[:, None] // 10 == torch.arange(400) // 10
    assert alike[same].mean() > alike[~same].mean() + 0.15
    assert found.norm(dim=1).std() < 1e-5


@pytest.mark.parametrize(
    "wrong", [{"layers": 1}, {"heads": 1}, {"rope_theta": 10.0}], ids=["one layer", "one head", "fast turns"]
)
def test_shapes_without_room_are_refused(wide, tmp_path, wrong):
    shape = msgspec.structs.replace(SMALL, **wrong)
    with pytest.raises(CheckpointError, match="no room for the heads"):
        made(wide, tmp_path / "made", shape)
    assert not (tmp_path / "made").exists()
