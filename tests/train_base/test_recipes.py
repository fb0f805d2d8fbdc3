"""The shipped recipes of the stage, and the texts that a vocabulary is made for."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from harnessctl import recipes
from harnessctl.cli.project import open_bundle
from harnessctl.train.base.config import BaseConfig, CorpusConfig
from harnessctl.train.base.corpus import general_texts, wanted
from harnessctl.train.job import Job

ROOT = Path(__file__).parents[2]
NAMES = ("default", "nano", "smol", "qwen3.6-35b-a3b")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("debug", [False, True])
def test_recipes_are_typed(name, debug):
    given = [f"recipe={name}", f"debug={str(debug).lower()}"]
    config = recipes.typed(recipes.debugged(recipes.compose(ROOT, "base", given), given), BaseConfig, job="train base")
    assert config.debug is debug
    assert (config.loop.steps <= 3) is debug


def test_default_is_nano():
    assert recipes.compose(ROOT, "base") == recipes.compose(ROOT, "base", ["recipe=nano"])


def test_the_corpus_has_harness_world_variants_and_general_tasks(make_job, encoder):
    from dataclasses import replace

    job: Job = replace(make_job(), root=ROOT, bundle=open_bundle("mini", ROOT)[0])
    found = wanted(job, CorpusConfig(variants=3, items=2), job.policy.template)
    texts = "\n".join(found.texts)
    assert "Call `" in texts and "Ondrel" in texts and "price and facts of a link" in texts and "\n yuan\n" in texts
    common = list(itertools.islice(general_texts(CorpusConfig(items=1), job.policy.template), 5000))
    assert "<|im_start|>user\n" in "\n".join(common)
    bare = wanted(job, CorpusConfig(variants=0, items=0), job.policy.template)
    assert "yuan" not in "\n".join(bare.texts)
