"""The shipped recipes of the stage, and the texts that a vocabulary is made for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnessctl import recipes
from harnessctl.cli.project import open_bundle
from harnessctl.train.base.config import BaseConfig, CorpusConfig
from harnessctl.train.base.corpus import corpus
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


def test_the_corpus_has_harness_world_variants_and_general_tasks(make_job):
    from dataclasses import replace

    job: Job = replace(make_job(), root=ROOT, bundle=open_bundle("mini", ROOT)[0])
    texts = "\n".join(corpus(job, CorpusConfig(variants=3, items=2), job.policy.template))
    assert "Call `" in texts and "Ondrel" in texts and "price and facts of a link" in texts and "\nyuan yuan\n" in texts
    assert "<|im_start|>user\n" in texts
    assert "Ondrel" not in "\n".join(corpus(job, CorpusConfig(variants=0, items=1), job.policy.template))
