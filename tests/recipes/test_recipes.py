from itertools import takewhile
from pathlib import Path

import pytest

from harnessctl import recipes
from harnessctl.errors import UsageError
from harnessctl.manifests.templates import template_root

RECIPES = sorted(p for p in (template_root("live-stream") / "recipes").glob("*/*.yaml") if p.parent.name != "_groups")


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_shipped_recipe_composes_and_says_how_to_run_it(path: Path):
    head = list(takewhile(lambda line: line.startswith("#"), path.read_text().splitlines()))
    assert head[0] == "# @package _global_"
    job = path.parent.name
    commands = (f"harnessctl {job.replace('-', ' ')}", f"harnessctl train {job}", f"harnessctl eval {job}")
    assert any(command in line for command in commands for line in head)
    assert recipes.compose(None, path.parent.name, [f"recipe={path.stem}"])


def test_a_key_is_set_and_typed():
    config = recipes.compose(None, "run", ["seed=7", "limits.deadline_s=180"])
    assert config["seed"] == 7
    assert config["limits"]["deadline_s"] == 180


def test_a_model_that_is_no_option_is_a_name():
    assert recipes.compose(None, "run", ["model=/models/mine"])["model"]["name"] == "/models/mine"
    assert recipes.compose(None, "run", ["model=openai"])["model"]["name"] == "default"


@pytest.mark.parametrize(
    ("override", "message", "hint"),
    [
        ("sed=3", "no key 'sed' in recipe run/default", "did you mean seed"),
        ("policy", "'policy' is not KEY=VALUE", "policy=local"),
        ("recipe=nope", "no recipe run/nope.yaml; there are default", "recipes/run/"),
        ("model.nmae=x", "no key 'model.nmae'", "model.name"),
    ],
)
def test_a_wrong_key_is_named_with_what_was_meant(override: str, message: str, hint: str):
    with pytest.raises(UsageError) as caught:
        recipes.compose(None, "run", [override])
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("override", ["teacher.model.body={top_k: 1}", "teacher.model.body.top_k=1"])
def test_a_part_of_an_empty_mapping_is_added(override: str):
    with pytest.raises(UsageError, match=r"teacher\.model\.body") as caught:
        recipes.compose(None, "sft", [override])
    assert "+teacher.model.body.NAME=VALUE" in caught.value.hint
    added = recipes.compose(None, "sft", ["+teacher.model.body.top_k=1"])
    assert added["teacher"]["model"]["body"] == {"top_k": 1}


def test_a_sweep_is_every_combination():
    assert recipes.expand(["seed=1,2", "loop=harness,react"]) == [
        ["seed=1", "loop=harness"],
        ["seed=1", "loop=react"],
        ["seed=2", "loop=harness"],
        ["seed=2", "loop=react"],
    ]


def test_a_projects_own_recipe_stands_on_the_packaged_one(project):
    root = project(
        {"recipes/run/mine.yaml": "# @package _global_\ndefaults:\n  - /run/default\n  - _self_\nseed: 41\n"}
    )
    config = recipes.compose(root, "run", ["recipe=mine"])
    assert config["seed"] == 41
    assert config["policy"] == "local"
