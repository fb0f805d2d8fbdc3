"""Data: the data set of a job: gathered into the run's folder, or taken from a folder that was made before.

What always holds: what is learnt from was made under the job's harness, template and tokenizer; held-out scenarios are
learnt from in none of their variants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.augment.stream import Stream
from harnessctl.checkpoint.tokenizer import tokenizer_digest
from harnessctl.errors import TrainingError
from harnessctl.evaluate.job import Job as Evaluation
from harnessctl.evaluate.setting import DEFAULT_ENVELOPE, Setting
from harnessctl.policies import endpoint_of
from harnessctl.records.sft_data import Card, Origin
from harnessctl.runtime.models.endpoint import resolve_endpoint
from harnessctl.storage import digest
from harnessctl.train.job import Job
from harnessctl.train.sft.config import SftConfig
from harnessctl.train.sft.dataset import DataFolder, Example, encoded
from harnessctl.train.sft.gathering import Gathering, Source, evaluation_config, told
from harnessctl.train.sft.teacher import Tongue

#: A word after every so many scenarios.
_TELL_EVERY = 500


@dataclass(slots=True, frozen=True)
class Data:
    """`learnt` are trained on, `held_out` are not."""

    card: Card
    learnt: list[Example]
    held_out: list[Example]

    @property
    def bundles(self) -> set[str]:
        """The digests of the harnesses that what is learnt was made under."""
        return {one.bundle for one in self.learnt}


def data_of(job: Job, *, is_first: bool = True) -> Data:
    """The data of the job, made where it is not there yet (by the first process only). TrainingError for data of another
    harness, and where nothing is left to learn from, with the counts."""
    config: SftConfig = job.config
    given, origin = config.data.path, origin_of(job)
    folder = DataFolder(job.folder / "data" if given is None else Path(given))
    if given is None and is_first:
        gather(job, folder, origin)
    card = folder.check(origin)
    if given is not None and is_first:
        job.talk(f"data of {given}: {card.samples} samples, {card.learnt} tokens to learn; {told(card.counts)}")
    return split(card, folder.examples(), config)


def check_source(job: Job) -> None:
    """Before there is a run: UsageError for what data is to be made with and is not there: an envelope, a world, the key
    of the teacher's endpoint."""
    config: SftConfig = job.config
    if config.data.path is None:
        if config.teacher.policy == "openai":
            resolve_endpoint(endpoint_of(config.teacher.model))
        evaluation = Evaluation(job.root, job.needs_bundle(), evaluation_config(config), job.judges)
        with evaluation.setting() as setting:
            if config.harness == "hsa":
                setting.check_envelope()


def gather(job: Job, folder: DataFolder, origin: Origin) -> Card:
    """Gather into `folder` what is not there yet. It belongs to `origin`."""
    config: SftConfig = job.config
    bundle = job.needs_bundle()
    evaluation = Evaluation(job.root, bundle, evaluation_config(config), job.judges)
    policy = job.policy
    gathering = Gathering(evaluation, config, Tongue.of(policy.template, policy.codec))
    with evaluation.setting() as setting:
        source = Source.of(setting, config)
        if config.harness == "hsa":
            setting.check_envelope()
        card = Card(
            origin=msgspec.structs.replace(origin, world=setting.world.digest),
            settings=_settings(config, origin),
            harness=config.harness,
            envelope=(config.data.envelope or DEFAULT_ENVELOPE) if config.harness == "hsa" else None,
            scenarios=source.n,
        )
        there = folder.begin(card)
        for harvest in folder.harvests():
            gathering.add(harvest.counts)
        left = [number for number in range(source.n) if number not in there]
        with folder.writer() as lines:
            for done, harvest in enumerate(_told(job, gathering, left, setting), len(there) + 1):
                lines.write(encoded(harvest))
                if done % _TELL_EVERY == 0:
                    job.talk(f"{done} of {source.n} scenarios: {told(gathering.counts)}")
    gathering.check()
    card = folder.finish(msgspec.structs.replace(card, counts=dict(sorted(gathering.counts.items()))))
    job.talk(f"data: {card.samples} samples, {card.learnt} tokens to learn of {card.tokens}; {told(card.counts)}")
    return card


def _told(job: Job, gathering: Gathering, left: Sequence[int], setting: Setting) -> Iterator[Any]:
    if left:
        job.talk(f"a teacher ({gathering.config.teacher.policy}) carries out {len(left)} scenarios")
    yield from gathering.harvests(left, setting)


def origin_of(job: Job) -> Origin:
    """What the job's data belongs to."""
    policy = job.policy
    return Origin(
        bundle=job.needs_bundle().digest,
        template=policy.template.digest,
        tokenizer=tokenizer_digest(policy.source),
    )


def split(card: Card, examples: Sequence[Example], config: SftConfig) -> Data:
    """Set the scenarios of the held-out share apart, at least one where there are two. TrainingError where nothing is
    left to learn from."""
    fitting = [one for one in examples if len(one.tokens) <= config.data.max_tokens]
    if not fitting:
        too_long = f"; {len(examples)} are longer than data.max_tokens={config.data.max_tokens}" if examples else ""
        raise TrainingError(f"there is nothing to learn from: {told(card.counts)}{too_long}")
    names = sorted({one.scenario for one in fitting}, key=lambda name: Stream(config.seed, "held out", name).unit())
    share = config.data.eval_share
    many = min(len(names) - 1, max(1, round(share * len(names)))) if share else 0
    apart = set(names[:many])
    return Data(
        card,
        [one for one in fitting if one.scenario not in apart],
        [one for one in fitting if one.scenario in apart],
    )


def _settings(config: SftConfig, origin: Origin) -> str:
    """The digest of all that decides what is gathered."""
    data = msgspec.to_builtins(config.data)
    for name in ("path", "workers", "eval_share", "min_yield"):
        del data[name]
    return digest(
        {
            "harness": config.harness,
            "seed": config.seed,
            "data": data,
            "teacher": msgspec.to_builtins(config.teacher),
            "judge": msgspec.to_builtins(config.judge),
            "origin": msgspec.to_builtins(origin),
        }
    )
