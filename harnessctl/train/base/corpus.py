"""Corpus: the texts that a small policy's vocabulary is made for: its harness and variants of it, its world, the general
tasks, and the chat template's own words.

What always holds: a function of the job's project, bundle and config; nothing is trained on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from harnessctl.bundle.files import encode_bundle
from harnessctl.data.general import Space, draw
from harnessctl.data.general.names import syllables, words
from harnessctl.decode.template import ChatTemplate
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.job import Job as Evaluation
from harnessctl.evaluate.setting import Setting
from harnessctl.evaluate.workers import outcomes
from harnessctl.policies import ModelConfig, SamplingConfig
from harnessctl.simulate.world import LiveWorld
from harnessctl.train.base.config import CorpusConfig
from harnessctl.train.job import Job

_WORD = re.compile(r"[^\W\d_]+")
_SPACES: tuple[Space, ...] = ("train", "held-out")
#: Added to the seed, so that the items are none that are trained on or measured.
_SEEDS_APART = 1 << 30


def corpus(job: Job, config: CorpusConfig, template: ChatTemplate) -> Iterator[str]:
    """What the vocabulary of the job's policy is made of."""
    yield from (segment.text for segment in template.reply_opening())
    if config.variants:
        yield from with_words(harness_texts(job, config))
    yield from general_texts(config, template)


def with_words(texts: Iterable[str]) -> Iterator[str]:
    """The texts, and twice each word of them, so that none is too rare to be a token."""
    seen: set[str] = set()
    for text in texts:
        yield text
        for word in _WORD.findall(text):
            if word not in seen:
                seen.add(word)
                yield f"{word} {word}"


def harness_texts(job: Job, config: CorpusConfig) -> Iterator[str]:
    """What the harness and its variants show, what an oracle says under them, and all cells of the world's tables."""
    bundle = job.needs_bundle()
    asked = EvalConfig(
        suite="variant-qa",
        model=ModelConfig(name="oracle"),
        sampling=SamplingConfig(),
        seed=_SEEDS_APART + job.config.seed,
        n=config.variants,
        envelope=config.envelope,
        rewriter="rules",
    )
    yield from _strings(orjson.loads(encode_bundle(bundle)))
    evaluation = Evaluation(job.root, bundle, asked, job.judges)
    with evaluation.setting() as setting:
        yield from _cells(setting)
        for outcome in outcomes(evaluation, range(config.variants), setting):
            for line in outcome.lines.values():
                yield from _strings(orjson.loads(line))


def _cells(setting: Setting) -> Iterator[str]:
    world: LiveWorld = setting.world
    connection = world.connection()
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in sorted(tables):
        quoted = table.replace('"', '""')
        for row in connection.execute(f'SELECT * FROM "{quoted}"'):
            yield from (cell for cell in tuple(row) if isinstance(cell, str))


def general_texts(config: CorpusConfig, template: ChatTemplate) -> Iterator[str]:
    """Items of the general tasks as they are read, and all parts of names. Held-out names are among them: a vocabulary
    that spells them in bytes would be measured, not the policy."""
    for space in _SPACES:
        yield from words(space)
        yield from syllables(space)
        for number in range(config.items):
            item = draw(_SEEDS_APART, number, names=space, concepts=space)
            for segments in template.render(item.messages, item.tools):
                yield from (segment.text for segment in segments)


def _strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
