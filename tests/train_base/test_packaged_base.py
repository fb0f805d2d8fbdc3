"""The base that comes with the package: whole, the first of its line, and able to find and copy what it never saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnessctl import recipes
from harnessctl.checkpoint.lineage import is_base, read_lineage
from harnessctl.checkpoint.policy import check_checkpoint
from harnessctl.checkpoint.tokenizer import tokenizer_digest
from harnessctl.decode.catalog import known_model, list_models, locate
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.errors import UsageError
from harnessctl.train.base.exactness import Exactness
from harnessctl.train.base.measures import measures
from harnessctl.train.config import PolicyConfig
from harnessctl.train.policy import load_policy
from harnessctl.train.sft.token_loss import TokenLoss

ROOT = Path(__file__).parents[2]
FOLDER = locate("nano-base").path


def test_it_is_a_checkpoint_that_names_no_folder_of_another_machine():
    check_checkpoint(FOLDER, content=True)
    lineage = read_lineage(FOLDER)
    assert lineage is not None and is_base(lineage, FOLDER)
    assert lineage.weights == lineage.base and lineage.tokenizer == tokenizer_digest(FOLDER)
    assert (lineage.stage, lineage.base_path, lineage.parent_path) == ("base", "nano-base", None)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 15_000_000


def test_it_was_made_by_the_recipe_that_is_shipped():
    lineage = read_lineage(FOLDER)
    assert lineage is not None
    shipped = recipes.compose(ROOT, "base", ["recipe=nano", "compile=true"])
    assert recipes.differing_keys(lineage.recipe, shipped) == []


def test_it_is_listed_and_not_pulled():
    (listed,) = [model for model in list_models() if model.name == "nano-base"]
    assert (listed.state, listed.path) == ("packaged", str(FOLDER))
    with pytest.raises(UsageError, match="comes with harnessctl"):
        known_model("nano-base")


def test_it_finds_and_copies_names_that_are_held_out():
    policy = load_policy(PolicyConfig(name="nano", device="cpu", dtype="float32"), FOLDER)
    asked = {name: one for name, one in measures(["copy", "lookup", "value"]).items() if name != "lookup-unseen"}
    exactness = Exactness(asked, PromptEncoder(policy.template, policy.codec), seed=1, items=8)
    found = exactness.of(TokenLoss(policy.model), policy, micro_tokens=4000)
    assert min(found.values()) >= 0.8, found
