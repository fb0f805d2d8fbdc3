"""The stage base: a policy that can do the general tasks.

For a small policy: a new model that a larger one tells which words are alike. For a model that is served as it came: the
tasks alone, mostly through adapters. What comes out is the base of its line: what later stages are kept near to.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from accelerate import Accelerator

from harnessctl.checkpoint.lineage import read_lineage, write_lineage
from harnessctl.checkpoint.tokenizer import tokenizer_digest
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.errors import UsageError
from harnessctl.storage import digest
from harnessctl.train.base.config import BaseConfig
from harnessctl.train.base.corpus import corpus
from harnessctl.train.base.estimate import estimated
from harnessctl.train.base.exactness import Exactness
from harnessctl.train.base.making import make_model
from harnessctl.train.base.measures import measures
from harnessctl.train.base.objective import BaseObjective
from harnessctl.train.budget import Budget
from harnessctl.train.config import TrainConfig
from harnessctl.train.job import Job
from harnessctl.train.loop import Loop
from harnessctl.train.policy import Policy, load_policy
from harnessctl.train.sft.token_loss import TokenLoss


class Base:
    """General tasks, learnt by cross-entropy."""

    name = "base"
    config: type[TrainConfig] = BaseConfig

    def budget(self, job: Job) -> Budget:
        """A step has a set number of tokens. A model that is yet to be made is timed by one of its shape: see `estimated`."""
        config: BaseConfig = job.config
        if config.compile and config.sharding != "none":
            raise UsageError(
                f"compile=true with sharding={config.sharding}: sharded weights are not compiled",
                hint="give one of them",
            )
        found = Budget(
            tokens_per_step=config.tokens_per_step,
            steps=config.loop.steps,
            note=f"general tasks, {config.micro_tokens} tokens at a time",
        )
        return found if config.make is None else estimated(job, config.make, found)

    def run(self, job: Job) -> None:
        """Make the model where the recipe says so, train, measure, save."""
        config: BaseConfig = job.config
        accelerator = job.accelerator or Accelerator(cpu=job.policy.device.type == "cpu")
        with accelerator.main_process_first():
            policy = begun(job)
        job.talk(f"{policy.name}: {policy.inner.num_parameters() / 1e6:.1f} million parameters")
        module = TokenLoss(policy.model, is_compiled=config.compile)
        module.check()
        loop = Loop(module, config.loop, points=job.points(), accelerator=accelerator, seed=config.seed)
        objective = BaseObjective(
            loop.model,
            policy,
            config,
            accelerator=accelerator,
            exactness=Exactness(
                measures(config.tasks.shares or None),
                PromptEncoder(policy.template, policy.codec),
                seed=config.seed,
                items=config.measure.items,
            ),
        )
        if loop.resume() < config.loop.steps:
            loop.run(objective, job.metrics)
            job.metrics.log(config.loop.steps, objective.exact())
        save(job, policy, is_first=accelerator.is_main_process)
        accelerator.wait_for_everyone()


def begun(job: Job) -> Policy:
    """The policy to train: that of the job, or a new one, in the folder `made` of the run."""
    config: BaseConfig = job.config
    if config.make is None:
        return job.policy
    folder = job.folder / "made"
    if not folder.exists():
        texts = corpus(job, config.make.vocabulary, job.policy.template)
        make_model(job.start, folder, config.make, texts=texts, seed=config.seed, lineage=job.lineage())
    return load_policy(config.model, folder)


def save(job: Job, policy: Policy, *, is_first: bool) -> None:
    """Write the checkpoint, as the first of its line: the base that its lineage speaks of is itself."""
    config: BaseConfig = job.config
    drawn = {"tasks": msgspec.to_builtins(config.tasks), "seed": config.seed, "tokens": config.tokens_per_step}
    policy.save(
        job.checkpoint, job.lineage(data=digest(drawn), tokenizer=tokenizer_digest(policy.source), envelope=None)
    )
    if is_first:
        begin_line(job.checkpoint)


def begin_line(folder: Path) -> None:
    """Make the checkpoint in `folder` the base of its own lineage."""
    lineage = read_lineage(folder)
    assert lineage is not None
    write_lineage(folder, msgspec.structs.replace(lineage, base=lineage.weights, base_path=str(folder)))


STAGE = Base()
